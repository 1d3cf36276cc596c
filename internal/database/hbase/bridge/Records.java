package bridge;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Operations on records. Each attempt is HBase's client's; whether there is another one
 * is decided here, so that attempts are counted and their outcome is known: an
 * operation of which every attempt was refused was not done, one of which any attempt
 * was sent without an answer may have been.
 */
final class Records {
  private final Cluster cluster;
  private final Output out;
  private final byte[] family;
  private final int retries;
  private final long pause; // milliseconds
  private static final ScheduledExecutorService timer =
      Executors.newSingleThreadScheduledExecutor(
          r -> {
            Thread t = new Thread(r, "pauses");
            t.setDaemon(true);
            return t;
          });

  Records(Cluster cluster, Output out) {
    this.cluster = cluster;
    this.out = out;
    family = Bytes.toBytes(cluster.conf.get("bridge.family", "family"));
    retries = cluster.conf.getInt("bridge.retries", 15);
    pause = cluster.conf.getLong("bridge.pause", 100);
  }

  void start(Request request) {
    new Operation(request).attempt();
  }

  /** One operation with its attempts, one after the other. */
  private final class Operation {
    final Request request;
    int tried; // attempts before this one
    boolean doubt; // one of them may have been carried out
    String server = "";

    Operation(Request request) {
      this.request = request;
    }

    void attempt() {
      CompletableFuture<AsyncConnection> connection = cluster.connect();
      if (connection.isDone() && !connection.isCompletedExceptionally()) {
        locate(connection.join());
        return;
      }
      connection.whenComplete(
          (c, failure) -> {
            if (failure != null) {
              failed(Verdict.unlocated(failure));
            } else {
              locate(c);
            }
          });
    }

    /** The region is found first: an operation whose region is not found was not sent. */
    void locate(AsyncConnection c) {
      try {
        Cluster.Place place = cluster.place(c, request.table);
        place
            .locator
            .getRegionLocation(request.key)
            .whenComplete(
                (HRegionLocation where, Throwable failure) -> {
                  if (failure != null) {
                    failed(Verdict.unlocated(failure));
                    return;
                  }
                  if (where.getServerName() != null) {
                    server = where.getServerName().getHostname();
                  }
                  try {
                    send(place);
                  } catch (RuntimeException e) { // a record without fields, for example
                    senseless(e);
                  }
                });
      } catch (RuntimeException e) { // a table's name that is none, for example
        senseless(e);
      }
    }

    void senseless(RuntimeException e) {
      answer(new Reply(request.id, Reply.FAILED, tried).name("error").name("").name(e.toString()));
    }

    void send(Cluster.Place place) {
      switch (request.operation) {
        case Request.READ:
          place.table.get(get()).whenComplete(this::read);
          return;
        case Request.SCAN:
          place.table.scanAll(scan()).whenComplete(this::scanned);
          return;
        case Request.WRITE:
          if (request.puts.length == 1) {
            place.table.put(put(request.puts[0])).whenComplete(this::written);
          } else {
            List<Put> puts = new ArrayList<>(request.puts.length);
            for (Request.Put p : request.puts) {
              puts.add(put(p));
            }
            place.table.putAll(puts).whenComplete(this::written);
          }
          return;
        case Request.DELETE:
          place
              .table
              .checkAndMutate(
                  CheckAndMutate.newBuilder(request.key)
                      .ifMatches(new FirstKeyOnlyFilter())
                      .build(new Delete(request.key).addFamily(family)))
              .whenComplete(this::deleted);
          return;
        default:
          throw new IllegalArgumentException("operation " + request.operation);
      }
    }

    Get get() {
      Get g = new Get(request.key);
      if (request.names.length == 0) {
        return g.addFamily(family);
      }
      for (byte[] name : request.names) {
        g.addColumn(family, name);
      }
      return g;
    }

    Scan scan() {
      Scan s =
          new Scan()
              .withStartRow(request.key)
              .setLimit(request.limit)
              .setCaching(request.limit)
              .setReadType(Scan.ReadType.PREAD);
      if (request.names.length == 0) {
        return s.addFamily(family);
      }
      for (byte[] name : request.names) {
        s.addColumn(family, name);
      }
      return s;
    }

    Put put(Request.Put record) {
      Put p = new Put(record.key);
      for (int i = 0; i < record.names.length; i++) {
        p.addColumn(family, record.names[i], HConstants.LATEST_TIMESTAMP, record.values[i]);
      }
      return p;
    }

    void read(Result r, Throwable failure) {
      if (failure != null) {
        failed(Verdict.of(failure));
      } else if (r.isEmpty()) {
        answer(new Reply(request.id, Reply.MISSING, tried));
      } else {
        answer(new Reply(request.id, Reply.OK, tried).record(r));
      }
    }

    void scanned(List<Result> records, Throwable failure) {
      if (failure != null) {
        failed(Verdict.of(failure));
      } else {
        answer(new Reply(request.id, Reply.OK, tried).records(records));
      }
    }

    void written(Void nothing, Throwable failure) {
      if (failure != null) {
        failed(Verdict.of(failure));
      } else {
        answer(new Reply(request.id, Reply.OK, tried));
      }
    }

    void deleted(CheckAndMutateResult r, Throwable failure) {
      if (failure != null) {
        failed(Verdict.of(failure));
      } else {
        answer(new Reply(request.id, r.isSuccess() ? Reply.OK : Reply.MISSING, tried));
      }
    }

    /**
     * Tries again or gives up. A delete that may have been done is not tried again: its
     * second attempt would find nothing and say so.
     */
    void failed(Verdict v) {
      boolean some = request.puts != null && request.puts.length > 1; // may be written, others not
      doubt = doubt || some || !v.refused;
      long wait = pause * HConstants.RETRY_BACKOFF[Math.min(tried, HConstants.RETRY_BACKOFF.length - 1)];
      boolean late = System.nanoTime() + wait * 1_000_000 >= request.deadline;
      boolean unsafe = doubt && request.operation == Request.DELETE;
      if (!v.again || unsafe || late || tried >= retries) {
        byte status = doubt ? Reply.UNKNOWN : Reply.FAILED;
        answer(new Reply(request.id, status, tried).name(v.type).name(server).name(v.message()));
        return;
      }
      tried++;
      timer.schedule(this::attempt, wait, TimeUnit.MILLISECONDS);
    }

    void answer(Reply reply) {
      out.send(reply);
    }
  }
}
