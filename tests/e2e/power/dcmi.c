/* A module of OpenIPMI's ipmi_sim: the DCMI command Get Power Reading, with what a file has.
 *
 * The file holds "watts is_active". Without it the command fails (0xd5), as where no sensor is.
 */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/msg.h>
#include <stdio.h>
#include <time.h>

enum { GROUP = 0xdc, GET_POWER_READING = 2, ANSWER_BYTES = 19 };

static char file_name[1024];

static void put(unsigned char *place, unsigned long value, int bytes)
{
    for (int at = 0; at < bytes; at++)
        place[at] = (unsigned char)(value >> (8 * at));
}

static void answer(lmc_data_t *mc, msg_t *message, unsigned char *data, unsigned int *size,
                   void *unused)
{
    unsigned watts = 0, is_active = 0;
    FILE *file = fopen(file_name, "r");
    int read = file ? fscanf(file, "%u %u", &watts, &is_active) : 0;

    (void)mc;
    (void)unused;
    if (file)
        fclose(file);
    *size = 1;
    if (message->cmd != GET_POWER_READING)
        data[0] = 0xc1;
    else if (read != 2)
        data[0] = 0xd5;
    else {
        *size = ANSWER_BYTES;
        data[0] = 0;
        data[1] = GROUP;
        for (int at = 2; at < 10; at += 2) /* now, minimum, maximum, mean */
            put(data + at, watts, 2);
        put(data + 10, (unsigned long)time(0), 4);
        put(data + 14, 1000, 4);
        data[18] = is_active ? 0x40 : 0;
    }
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options)
{
    (void)sys;
    snprintf(file_name, sizeof file_name, "%s", options);
    ipmi_emu_register_group_extension_handler(GROUP, answer, 0);
    return 0;
}
