package iolab.cassandra;

import java.util.Map;

/** Values written as JSON: text, numbers, flags, null, lists and maps of them. */
final class Json {
  private Json() {}

  static String of(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value == null || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof Number) {
      writeNumber((Number) value, out);
    } else if (value instanceof Map) {
      writeMap((Map<?, ?>) value, out);
    } else if (value instanceof Iterable) {
      writeList((Iterable<?>) value, out);
    } else {
      writeText(value.toString(), out);
    }
  }

  private static void writeNumber(Number number, StringBuilder out) {
    double value = number.doubleValue();
    out.append(Double.isNaN(value) || Double.isInfinite(value) ? "null" : number.toString());
  }

  private static void writeMap(Map<?, ?> map, StringBuilder out) {
    String between = "{";
    for (Map.Entry<?, ?> entry : map.entrySet()) {
      out.append(between);
      writeText(entry.getKey().toString(), out);
      out.append(':');
      write(entry.getValue(), out);
      between = ",";
    }
    out.append(map.isEmpty() ? "{}" : "}");
  }

  private static void writeList(Iterable<?> list, StringBuilder out) {
    out.append('[');
    String between = "";
    for (Object item : list) {
      out.append(between);
      write(item, out);
      between = ",";
    }
    out.append(']');
  }

  private static void writeText(String text, StringBuilder out) {
    out.append('"');
    for (char sign : text.toCharArray()) {
      if (sign == '"' || sign == '\\') {
        out.append('\\').append(sign);
      } else if (sign < ' ') {
        out.append(String.format("\\u%04x", (int) sign));
      } else {
        out.append(sign);
      }
    }
    out.append('"');
  }
}
