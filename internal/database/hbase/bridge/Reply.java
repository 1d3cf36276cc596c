package bridge;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Result;

/**
 * One reply.
 *
 * <pre>
 *   length 4 │ id 8 │ status 1 │ attempts beyond the first 2 │ body
 *
 *   OK        of READ: a record's fields; of SCAN: count 4, each a key (a name) and a
 *             record's fields; of ADMINISTER: count 4 of lines, each length 4 and UTF-8
 *   MISSING   nothing: there is no such record
 *   FAILED    class, server, message (names): it certainly was not done
 *   UNKNOWN   the same: it may have been done
 *
 *   a record's fields: count 2, each a name, length 4, value
 * </pre>
 */
final class Reply {
  static final byte OK = 0;
  static final byte MISSING = 1;
  static final byte FAILED = 2;
  static final byte UNKNOWN = 3;

  private static final int MAX_MESSAGE = 1000;

  byte[] buffer = new byte[256];
  int length = 4;

  Reply(long id, byte status, int retries) {
    number(id, 8);
    buffer[length++] = status;
    number(Math.min(retries, 0xffff), 2);
  }

  Reply record(Result record) {
    Cell[] cells = record.rawCells();
    number(cells.length, 2);
    for (Cell c : cells) {
      number(c.getQualifierLength(), 2);
      bytes(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength());
      number(c.getValueLength(), 4);
      bytes(c.getValueArray(), c.getValueOffset(), c.getValueLength());
    }
    return this;
  }

  Reply records(List<Result> records) {
    number(records.size(), 4);
    for (Result r : records) {
      byte[] key = r.getRow();
      number(key.length, 2);
      bytes(key, 0, key.length);
      record(r);
    }
    return this;
  }

  Reply lines(List<String> lines) {
    number(lines.size(), 4);
    for (String s : lines) {
      byte[] b = s.getBytes(StandardCharsets.UTF_8);
      number(b.length, 4);
      bytes(b, 0, b.length);
    }
    return this;
  }

  Reply name(String text) {
    byte[] b = text.substring(0, Math.min(text.length(), MAX_MESSAGE)).getBytes(StandardCharsets.UTF_8);
    number(b.length, 2);
    bytes(b, 0, b.length);
    return this;
  }

  private void number(long n, int size) {
    room(size);
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      buffer[length++] = (byte) (n >>> shift);
    }
  }

  private void bytes(byte[] from, int offset, int count) {
    room(count);
    System.arraycopy(from, offset, buffer, length, count);
    length += count;
  }

  private void room(int count) {
    if (buffer.length - length < count) {
      buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, length + count));
    }
  }
}
