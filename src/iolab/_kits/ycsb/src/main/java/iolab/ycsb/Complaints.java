package iolab.ycsb;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * What went wrong, on standard error: the first few, since a dead server fails every operation.
 *
 * <p>Every failure is counted by YCSB itself under the status that the operation returned.
 */
final class Complaints {
  static final String MARK = "iolab: ";
  private static final int LIMIT = 8;
  private static final AtomicInteger SAID = new AtomicInteger();

  private Complaints() {}

  static void say(String operation, Throwable fault) {
    if (SAID.incrementAndGet() <= LIMIT) {
      System.err.println(MARK + operation + " failed: " + oneLine(fault));
    }
  }

  static String oneLine(Throwable fault) {
    String text = fault.getClass().getSimpleName() + ": " + fault.getMessage();
    return text.replaceAll("\\s+", " ");
  }
}
