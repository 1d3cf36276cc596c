import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The loop that one would write by hand on HBase's client, which the bridge is compared
 * with: threads that read and update records, half and half.
 *
 * <p>Loop QUORUM THREADS OPERATIONS RECORDS prints the CPU time of an operation in
 * nanoseconds, once the code is warm.
 */
public final class Loop {
  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", args[0]);
    int threads = Integer.parseInt(args[1]);
    long operations = Long.parseLong(args[2]);
    int records = Integer.parseInt(args[3]);
    com.sun.management.OperatingSystemMXBean os =
        (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    try (Connection c = ConnectionFactory.createConnection(conf)) {
      run(c, threads, operations, records);
      long before = os.getProcessCpuTime();
      run(c, threads, operations, records);
      System.out.println((os.getProcessCpuTime() - before) / operations);
    }
  }

  private static void run(Connection c, int threads, long operations, int records) throws Exception {
    AtomicLong next = new AtomicLong();
    Thread[] workers = new Thread[threads];
    byte[] family = Bytes.toBytes("family");
    for (int i = 0; i < threads; i++) {
      workers[i] =
          new Thread(
              () -> {
                try (Table t = c.getTable(TableName.valueOf("usertable"))) {
                  byte[] value = new byte[100];
                  for (long n = next.getAndIncrement(); n < operations; n = next.getAndIncrement()) {
                    byte[] key = ("user" + n % records).getBytes(StandardCharsets.UTF_8);
                    if (n % 2 == 0) {
                      t.get(new Get(key).addFamily(family));
                    } else {
                      t.put(new Put(key).addColumn(family, Bytes.toBytes("field" + n % 10), value));
                    }
                  }
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
              });
      workers[i].start();
    }
    for (Thread w : workers) {
      w.join();
    }
  }
}
