package iolab.ycsb;

import java.util.Properties;
import site.ycsb.DBException;

/** Properties of a binding, each read with its kind; a wrong one is told with its value. */
final class Settings {
  private final Properties properties;

  Settings(Properties properties) {
    this.properties = properties;
  }

  /** The text of a property that must be given. */
  String required(String name) throws DBException {
    String text = properties.getProperty(name, "").trim();
    if (text.isEmpty()) {
      throw new DBException("The property '" + name + "' is not given.");
    }
    return text;
  }

  String text(String name, String otherwise) {
    return properties.getProperty(name, otherwise).trim();
  }

  /** A whole number from {@code least} on. */
  long whole(String name, long otherwise, long least) throws DBException {
    String text = text(name, Long.toString(otherwise));
    try {
      long number = Long.parseLong(text);
      if (number >= least) {
        return number;
      }
    } catch (NumberFormatException notOne) {
      // Told below, as a number that is too small.
    }
    throw new DBException(
        "The property '" + name + "' is '" + text + "', not a number from " + least + ".");
  }

  /** {@code true} or {@code false}, and nothing else. */
  boolean flag(String name, boolean otherwise) throws DBException {
    String text = text(name, Boolean.toString(otherwise));
    if (!text.equals("true") && !text.equals("false")) {
      throw new DBException("The property '" + name + "' is '" + text + "', not true or false.");
    }
    return text.equals("true");
  }
}
