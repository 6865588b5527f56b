package iolab.cassandra;

import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSetFuture;
import com.datastax.driver.core.exceptions.DriverException;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The rows of a table, counted by ranges of tokens (of the Murmur3 partitioner).
 *
 * <p>{@code addresses= consistency= keyspace= table= ranges= sample=}: of {@code ranges} equal
 * ranges every (ranges/sample)-th is counted; all of them when both are equal. The answer is {@code
 * {"rows": rows in the ranges counted, "ranges": n, "sample": n}}.
 */
public final class Rows {
  private static final int UNDER_WAY = 4;
  /** The token Long.MIN_VALUE belongs to no row. */
  private static final BigInteger FIRST = BigInteger.valueOf(Long.MIN_VALUE);
  private static final BigInteger TOKENS = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);

  private Rows() {}

  public static void main(String[] words) {
    Tool.run(
        words,
        arguments -> {
          try (Nodes nodes = new Nodes(arguments)) {
            return counted(nodes, arguments);
          } catch (DriverException fault) {
            throw new Refusal("The rows cannot be counted: " + Tool.said(fault));
          }
        });
  }

  private static Map<String, Object> counted(Nodes nodes, Arguments arguments) {
    long ranges = arguments.whole("ranges");
    long sample = arguments.whole("sample");
    if (ranges < 1 || sample < 1 || ranges % sample != 0) {
      throw new Refusal(sample + " ranges cannot be taken of " + ranges + " at equal distances.");
    }
    PreparedStatement count =
        nodes.session.prepare(
            "SELECT count(*) FROM "
                + arguments.name("keyspace")
                + "."
                + arguments.name("table")
                + " WHERE token(y_id) > ? AND token(y_id) <= ?");
    count.setConsistencyLevel(
        com.datastax.driver.core.ConsistencyLevel.valueOf(arguments.text("consistency")));
    ArrayDeque<ResultSetFuture> waiting = new ArrayDeque<>();
    long rows = 0;
    for (long range = 0; range < ranges; range += ranges / sample) {
      BoundStatement bound = count.bind();
      bound.setLong(0, edge(range, ranges));
      bound.setLong(1, edge(range + 1, ranges));
      waiting.add(nodes.session.executeAsync(bound));
      if (waiting.size() >= UNDER_WAY) {
        rows += waiting.remove().getUninterruptibly().one().getLong(0);
      }
    }
    while (!waiting.isEmpty()) {
      rows += waiting.remove().getUninterruptibly().one().getLong(0);
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("rows", rows);
    told.put("ranges", ranges);
    told.put("sample", sample);
    return told;
  }

  private static long edge(long range, long ranges) {
    BigInteger passed =
        TOKENS.multiply(BigInteger.valueOf(range)).divide(BigInteger.valueOf(ranges));
    return FIRST.add(passed).longValueExact();
  }
}
