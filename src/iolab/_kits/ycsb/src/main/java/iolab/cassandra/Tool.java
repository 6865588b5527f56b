package iolab.cassandra;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;

/** How every command here ends: its answer as one line of JSON, or a sentence on what is wrong. */
final class Tool {
  /** What a command does with its arguments. */
  interface Work {
    Map<String, ?> answer(Arguments arguments) throws Exception;
  }

  private Tool() {}

  /** Does the work and ends the process: 0 with an answer or a refusal, 1 when nobody hears it. */
  static void run(String[] words, Work work) {
    Map<String, ?> told;
    try {
      told = work.answer(new Arguments(words));
    } catch (Refusal refusal) {
      told = Collections.singletonMap("refused", refusal.getMessage());
    } catch (Exception fault) {
      told = Collections.singletonMap("refused", said(fault));
    }
    PrintStream out = out();
    out.println(Json.of(told));
    out.flush();
    // Threads of the driver or of JMX may still wait for something.
    Runtime.getRuntime().halt(out.checkError() ? 1 : 0);
  }

  static PrintStream out() {
    try {
      return new PrintStream(System.out, false, StandardCharsets.UTF_8.name());
    } catch (java.io.UnsupportedEncodingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** An exception and what caused it, in one line. */
  static String said(Throwable fault) {
    StringBuilder said = new StringBuilder();
    String before = "";
    for (Throwable one = fault; one != null && one != one.getCause(); one = one.getCause()) {
      String text = one.getClass().getSimpleName();
      if (one.getMessage() != null) {
        text += " " + one.getMessage().replaceAll("\\s+", " ");
      }
      // The driver throws what it caught once more for each thread that it passes.
      if (!text.equals(before)) {
        said.append(said.length() == 0 ? "" : ": ").append(text);
      }
      before = text;
    }
    return said.toString();
  }
}
