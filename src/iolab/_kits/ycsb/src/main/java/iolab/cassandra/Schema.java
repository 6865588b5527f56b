package iolab.cassandra;

import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * YCSB's table in a keyspace: described, made, marked and dropped.
 *
 * <p>{@code do=describe|create|mark|drop addresses= consistency= keyspace= table=}, with {@code
 * replication= fields= comment=} to create and {@code comment=} to mark. The answer is always the
 * description after that. Nothing is ever dropped whose comment does not begin as {@code comment=}.
 */
public final class Schema {
  private final Session session;
  private final String keyspace;
  private final String table;

  private Schema(Nodes nodes, Arguments arguments) {
    session = nodes.session;
    keyspace = arguments.name("keyspace");
    table = arguments.name("table");
  }

  public static void main(String[] words) {
    Tool.run(
        words,
        arguments -> {
          try (Nodes nodes = new Nodes(arguments)) {
            Schema schema = new Schema(nodes, arguments);
            schema.act(arguments);
            return schema.description();
          } catch (DriverException fault) {
            throw new Refusal("Cassandra refused: " + Tool.said(fault));
          }
        });
  }

  private void act(Arguments arguments) {
    switch (arguments.text("do")) {
      case "describe":
        return;
      case "create":
        create(arguments);
        return;
      case "mark":
        session.execute(
            "ALTER TABLE " + name() + " WITH comment = " + quoted(arguments.text("comment")));
        return;
      case "drop":
        drop(arguments);
        return;
      default:
        throw new Refusal("'" + arguments.text("do") + "' is nothing to do with a schema.");
    }
  }

  private void create(Arguments arguments) {
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS "
            + keyspace
            + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
            + arguments.whole("replication")
            + "}");
    StringBuilder columns = new StringBuilder("y_id varchar PRIMARY KEY");
    for (long field = 0; field < arguments.whole("fields"); field++) {
      columns.append(", field").append(field).append(" varchar");
    }
    session.execute(
        "CREATE TABLE "
            + name()
            + " ("
            + columns
            + ") WITH compression = {'enabled': 'false'} AND comment = "
            + quoted(arguments.text("comment")));
  }

  private void drop(Arguments arguments) {
    Object comment = description().get("comment");
    if (comment == null || !comment.toString().startsWith(arguments.text("comment"))) {
      throw new Refusal(name() + " was not made by iolab, and is left as it is.");
    }
    session.execute("DROP TABLE " + name());
    if (tables() == 0) {
      session.execute("DROP KEYSPACE " + keyspace);
    }
  }

  private Map<String, Object> description() {
    Map<String, Object> told = new LinkedHashMap<>();
    Row local = session.execute("SELECT release_version FROM system.local").one();
    told.put("version", local.getString("release_version"));
    told.put("nodes", session.execute("SELECT peer FROM system.peers").all().size() + 1);
    Row made =
        session
            .execute(
                "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", keyspace)
            .one();
    told.put(
        "replication",
        made == null ? null : new TreeMap<>(made.getMap("replication", String.class, String.class)));
    told.put("tables", tables());
    Row found =
        session
            .execute(
                "SELECT comment FROM system_schema.tables"
                    + " WHERE keyspace_name = ? AND table_name = ?",
                keyspace,
                table)
            .one();
    told.put("comment", found == null ? null : found.getString("comment"));
    Map<String, String> columns = new TreeMap<>();
    List<String> key = new ArrayList<>();
    for (Row row :
        session.execute(
            "SELECT column_name, kind, type FROM system_schema.columns"
                + " WHERE keyspace_name = ? AND table_name = ?",
            keyspace,
            table)) {
      columns.put(row.getString("column_name"), row.getString("type"));
      if (!row.getString("kind").equals("regular")) {
        key.add(row.getString("column_name"));
      }
    }
    told.put("columns", found == null ? null : columns);
    told.put("key", found == null ? null : key);
    return told;
  }

  private int tables() {
    return session
        .execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?", keyspace)
        .all()
        .size();
  }

  private String name() {
    return keyspace + "." + table;
  }

  private static String quoted(String text) {
    return "'" + text.replace("'", "''") + "'";
  }
}
