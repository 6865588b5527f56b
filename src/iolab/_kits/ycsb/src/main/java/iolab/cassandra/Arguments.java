package iolab.cassandra;

import java.util.Map;
import java.util.TreeMap;

/** The words {@code name=value} of a command; a missing or a wrong one is told with its value. */
final class Arguments {
  private final Map<String, String> values = new TreeMap<>();

  Arguments(String[] words) {
    for (String word : words) {
      int sign = word.indexOf('=');
      if (sign < 1) {
        throw new Refusal("'" + word + "' is not name=value.");
      }
      values.put(word.substring(0, sign), word.substring(sign + 1));
    }
  }

  String text(String name) {
    String value = values.get(name);
    if (value == null || value.isEmpty()) {
      throw new Refusal("'" + name + "' is not given.");
    }
    return value;
  }

  /** A name that may stand in CQL as it is: nothing of it is ever quoted. */
  String name(String name) {
    String value = text(name);
    if (!value.matches("[a-z][a-z0-9_]{0,47}")) {
      throw new Refusal("'" + value + "' is no name of Cassandra's in lower case.");
    }
    return value;
  }

  long whole(String name) {
    String value = text(name);
    try {
      return Long.parseLong(value);
    } catch (NumberFormatException notOne) {
      throw new Refusal("'" + name + "' is '" + value + "', not a whole number.");
    }
  }
}
