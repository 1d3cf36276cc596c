package site.ycsb.workloads;

import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;

import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.measurements.Measurements;

/**
 * Draws operations of YCSB's own CoreWorkload and counts them. It is in YCSB's package, since the method
 * that chooses a key is not public.
 *
 * <p>Draw FILE OPERATIONS PREFIX prints lines of words with tabs between them: "load KEY FIELD LENGTH VALUE" and
 * "key NUMBER KEY" of the first PREFIX records and operations, "inserted KEY" of the first PREFIX inserts, and
 * "count STATISTIC VALUE N".
 */
public final class Draw extends CoreWorkload {
  /** Recorder is the database: it counts what it is asked for. */
  private final class Recorder extends DB {
    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
      operation += "READ";
      choose(key);
      count("read-fields", fieldsOf(fields));
      return Status.OK;
    }

    @Override
    public Status scan(String table, String key, int length, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
      operation += "SCAN";
      choose(key);
      count("scan-fields", fieldsOf(fields));
      count("scan-length", Integer.toString(length));
      result.add(new HashMap<>());
      return Status.OK;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
      operation += "UPDATE";
      choose(key);
      count("update-fields", fieldsOf(values.keySet()));
      lengths("update-length", values);
      return Status.OK;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
      operation += "INSERT";
      if (loading) {
        for (Map.Entry<String, ByteIterator> v : new TreeMap<>(values).entrySet()) {
          long length = v.getValue().bytesLeft();
          out.println("load\t" + key + "\t" + v.getKey() + "\t" + length + "\t" + (integrity ? v.getValue().toString() : ""));
        }
        return Status.OK;
      }
      if (inserted++ < prefix) {
        out.println("inserted\t" + key);
      }
      lengths("insert-length", values);
      return Status.OK;
    }

    @Override
    public Status delete(String table, String key) {
      throw new UnsupportedOperationException("YCSB draws no delete");
    }
  }

  private final Map<String, Map<String, long[]>> counts = new TreeMap<>();
  private final PrintStream out;
  private final int prefix;
  private final boolean byAge;
  private final boolean integrity;
  private boolean loading;
  private String operation = "";
  private long number;
  private int inserted;
  private int chosen;
  private int part;

  private Draw(Properties p, int prefix, PrintStream out) {
    this.prefix = prefix;
    this.out = out;
    String requests = p.getProperty("requestdistribution", "uniform");
    byAge = requests.equals("latest") || requests.equals("exponential");
    integrity = Boolean.parseBoolean(p.getProperty("dataintegrity", "false"));
  }

  @Override
  long nextKeynum() {
    number = super.nextKeynum();
    if (byAge) {
      count("age-" + part, Long.toString(transactioninsertkeysequence.lastValue() - number));
    } else {
      count("key", Long.toString(number));
    }
    return number;
  }

  private void choose(String key) {
    if (chosen++ < prefix) {
      out.println("key\t" + number + "\t" + key);
    }
  }

  private String fieldsOf(Set<String> fields) {
    if (fields == null) {
      return "*";
    }
    return fields.size() == 1 ? fields.iterator().next() : Integer.toString(fields.size());
  }

  private void lengths(String statistic, Map<String, ByteIterator> values) {
    for (ByteIterator v : values.values()) {
      count(statistic, Long.toString(v.bytesLeft()));
    }
  }

  private void count(String statistic, String value) {
    counts.computeIfAbsent(statistic, s -> new HashMap<>()).computeIfAbsent(value, v -> new long[1])[0]++;
  }

  private void draw(int operations) {
    DB db = new Recorder();
    loading = true;
    long records = Math.min(prefix, recordcount);
    for (long n = 0; n < records; n++) {
      doInsert(db, null);
    }
    loading = false;
    for (int n = 0; n < operations; n++) {
      part = (int) (4L * n / operations);
      operation = "";
      doTransaction(db, null);
      count("operation", operation);
    }
    counts.forEach((statistic, values) ->
        values.forEach((value, n) -> out.println("count\t" + statistic + "\t" + value + "\t" + n[0])));
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    System.setOut(System.err); // YCSB writes notices to the standard output
    Properties p = new Properties();
    try (Reader file = new InputStreamReader(new FileInputStream(args[0]), StandardCharsets.UTF_8)) {
      p.load(file);
    }
    Measurements.setProperties(p);
    Draw w = new Draw(p, Integer.parseInt(args[2]), out);
    w.init(p);
    w.draw(Integer.parseInt(args[1]));
    out.close();
  }
}
