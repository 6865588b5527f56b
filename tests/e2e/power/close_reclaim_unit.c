/* Closes the reclaim unit of placement handle 0 of a namespace before it is full, so that its drive
 * counts all of it as written: I/O Management Send, Reclaim Unit Handle Update (NVMe TP4146). */
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int count, char **words) {
  static uint16_t handles[2048] __attribute__((aligned(4096)));
  struct nvme_passthru_cmd command = {.opcode = 0x1d, .nsid = 1, .cdw10 = 1,
                                      .addr = (uint64_t)(uintptr_t)handles, .data_len = 2};
  int drive = count == 2 ? open(words[1], O_RDWR) : -1;
  int status = drive < 0 ? -1 : ioctl(drive, NVME_IOCTL_IO_CMD, &command);
  if (status != 0) printf("status %x\n", status);
  return status != 0;
}
