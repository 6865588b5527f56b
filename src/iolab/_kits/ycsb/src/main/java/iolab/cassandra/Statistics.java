package iolab.cassandra;

import java.io.IOException;
import java.io.PrintStream;
import java.time.Instant;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * A node's own counters over JMX on loopback, and what nodetool would be asked for.
 *
 * <p>{@code do=watch jmx=PORT keyspace= table= cql_host= cql_port= interval_ms= wait_s=} waits until
 * the node answers to CQL and to JMX, then prints a line at once and one every interval, until it is
 * ended: {@code {"real_ns": n, "counters": {name: n or null}}}. {@code do=settle jmx= keyspace=
 * table= wait_s=} flushes the table, compacts it, waits until no compaction is pending, and prints
 * one line.
 */
public final class Statistics {
  private static final long RETRY_MS = 200;
  private static final long NS_PER_S = 1_000_000_000L;
  private static final String STORAGE = "org.apache.cassandra.db:type=StorageService";

  private Statistics() {}

  public static void main(String[] words) {
    Tool.run(
        words,
        arguments -> {
          String what = arguments.text("do");
          long until = System.nanoTime() + arguments.whole("wait_s") * NS_PER_S;
          try (JMXConnector connector = connected(arguments, until)) {
            MBeanServerConnection node = connector.getMBeanServerConnection();
            Counters counters =
                new Counters(node, arguments.name("keyspace"), arguments.name("table"));
            if (what.equals("watch")) {
              watch(counters, arguments, until);
            } else {
              act(what, node, arguments);
            }
            return line(counters);
          }
        });
  }

  private static JMXConnector connected(Arguments arguments, long until) throws Exception {
    String url =
        "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments.whole("jmx") + "/jmxrmi";
    while (true) {
      try {
        return JMXConnectorFactory.connect(new JMXServiceURL(url));
      } catch (IOException notYet) {
        if (System.nanoTime() > until) {
          throw new Refusal("The node does not answer to JMX: " + Tool.said(notYet));
        }
        Thread.sleep(RETRY_MS);
      }
    }
  }

  private static void watch(Counters counters, Arguments arguments, long until) throws Exception {
    String host = arguments.text("cql_host");
    int port = (int) arguments.whole("cql_port");
    while (!Greeting.answered(host, port)) {
      if (System.nanoTime() > until) {
        throw new Refusal("The node does not answer to CQL at " + host + ":" + port + ".");
      }
      Thread.sleep(RETRY_MS);
    }
    long interval = TimeUnit.MILLISECONDS.toNanos(arguments.whole("interval_ms"));
    PrintStream out = Tool.out();
    long due = System.nanoTime();
    while (!out.checkError()) {
      out.println(Json.of(line(counters)));
      out.flush();
      // Whole intervals from the first line on; one that is overtaken is left out.
      long now = System.nanoTime();
      due += ((now - due) / interval + 1) * interval;
      TimeUnit.NANOSECONDS.sleep(due - now);
    }
  }

  private static void act(String what, MBeanServerConnection node, Arguments arguments)
      throws Exception {
    String keyspace = arguments.name("keyspace");
    Object tables = new String[] {arguments.name("table")};
    if (!what.equals("settle")) {
      throw new Refusal("'" + what + "' is nothing to do with a node.");
    }
    String[] flushed = {"java.lang.String", "[Ljava.lang.String;"};
    call(node, "forceKeyspaceFlush", new Object[] {keyspace, tables}, flushed);
    unthrottle(node);
    String[] compacted = {"boolean", "java.lang.String", "[Ljava.lang.String;"};
    call(node, "forceKeyspaceCompaction", new Object[] {false, keyspace, tables}, compacted);
    awaitCompactions(node);
  }

  /** A node that is settled ends afterwards: the limit is for one that serves meanwhile. */
  private static void unthrottle(MBeanServerConnection node) throws IOException {
    try {
      node.setAttribute(
          new ObjectName(STORAGE), new Attribute("CompactionThroughputMbPerSec", 0));
    } catch (JMException otherwise) {
      // A version that calls it otherwise takes longer.
    }
  }

  private static void call(
      MBeanServerConnection node, String operation, Object[] values, String[] kinds)
      throws IOException {
    try {
      node.invoke(new ObjectName(STORAGE), operation, values, kinds);
    } catch (JMException fault) {
      throw new Refusal("The node refused " + operation + ": " + Tool.said(fault));
    }
  }

  /**
   * Returns when no compaction runs any more; the caller's own limit ends it otherwise.
   *
   * <p>The node's count of pending tasks does not tell that: it is an estimate which nothing makes
   * anew once all is compacted, and may stay above zero for good.
   */
  private static void awaitCompactions(MBeanServerConnection node) throws Exception {
    ObjectName manager = new ObjectName("org.apache.cassandra.db:type=CompactionManager");
    while (!((Collection<?>) node.getAttribute(manager, "Compactions")).isEmpty()) {
      Thread.sleep(RETRY_MS);
    }
  }

  private static Map<String, Object> line(Counters counters) throws IOException {
    Instant now = Instant.now();
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("real_ns", now.getEpochSecond() * NS_PER_S + now.getNano());
    line.put("counters", counters.now());
    return line;
  }
}
