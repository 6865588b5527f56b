package iolab.ycsb;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.LinkedHashSet;
import java.util.Properties;
import java.util.Set;
import site.ycsb.DBException;
import site.ycsb.measurements.Measurements;

/**
 * Opens YCSB's latency logs before a thread needs one.
 *
 * <p>YCSB opens a log where the first operation of its kind comes to its end, and without a lock: of
 * threads that come there together each opens the file anew and empties it, the slowest of them
 * after the first seconds were written. Those were lost then. This is called while all threads wait.
 */
final class LatencyLogs {
  private static final String[][] OPERATIONS = {
    {"readproportion", "READ"},
    {"updateproportion", "UPDATE"},
    {"insertproportion", "INSERT"},
    {"scanproportion", "SCAN"},
    {"readmodifywriteproportion", "READ-MODIFY-WRITE"},
    // What those are made of.
    {"readmodifywriteproportion", "READ"},
    {"readmodifywriteproportion", "UPDATE"},
  };

  private LatencyLogs() {}

  /** Open those of all operations of the mix, where logs are asked for. */
  static void open(Properties properties) throws DBException {
    if (!properties.getProperty("hdrhistogram.fileoutput", "false").equals("true")) {
      return;
    }
    Set<String> wanted = new LinkedHashSet<>();
    for (String[] operation : OPERATIONS) {
      if (share(properties.getProperty(operation[0], "0")) > 0) {
        wanted.add(operation[1]);
      }
    }
    String interval = properties.getProperty("measurement.interval", "op");
    for (String name : wanted) {
      if (!interval.equals("intended")) {
        open("getOpMeasurement", name);
      }
      if (!interval.equals("op")) {
        open("getOpIntendedMeasurement", name);
      }
    }
  }

  private static void open(String method, String name) throws DBException {
    try {
      Method opens = Measurements.class.getDeclaredMethod(method, String.class);
      opens.setAccessible(true);
      opens.invoke(Measurements.getMeasurements(), name);
    } catch (NoSuchMethodException other) {
      // Another YCSB, which may have mended it; operations that are not logged are told in any case.
    } catch (IllegalAccessException | InvocationTargetException fault) {
      throw new DBException("The latency log of " + name + " cannot be opened: " + fault, fault);
    }
  }

  private static double share(String text) {
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException none) {
      return 0;
    }
  }
}
