package bridge;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * One request. All numbers are big-endian; a name is its length in 2 bytes and UTF-8.
 *
 * <pre>
 *   length 4 │ id 8 │ operation 1 │ milliseconds left 4 │ arguments
 *
 *   READ, SCAN   table, key, limit 4, count 2 of fields, their names
 *   WRITE        table, key, count 2 of fields, each its name, length 4, value
 *   DELETE       table, key
 *   ADMINISTER   count 2 of words, each length 4 and UTF-8
 * </pre>
 */
final class Request {
  static final int HEADER = 13;
  static final byte READ = 1;
  static final byte SCAN = 2;
  static final byte WRITE = 3;
  static final byte DELETE = 4;
  static final byte ADMINISTER = 5;

  final long id;
  final byte operation;
  /** When nobody waits for the reply any more, by System.nanoTime. */
  final long deadline;

  final String table;
  final byte[] key;
  final int limit;
  final byte[][] names;
  final byte[][] values;
  final String[] words;

  Request(ByteBuffer in) {
    id = in.getLong();
    operation = in.get();
    deadline = System.nanoTime() + in.getInt() * 1_000_000L;
    if (operation == ADMINISTER) {
      words = new String[in.getShort()];
      for (int i = 0; i < words.length; i++) {
        words[i] = new String(bytes(in, in.getInt()), StandardCharsets.UTF_8);
      }
      table = null;
      key = null;
      limit = 0;
      names = null;
      values = null;
      return;
    }
    words = null;
    table = new String(name(in), StandardCharsets.UTF_8);
    key = name(in);
    limit = operation == READ || operation == SCAN ? in.getInt() : 0;
    int fields = operation == DELETE ? 0 : in.getShort() & 0xffff;
    names = new byte[fields][];
    values = operation == WRITE ? new byte[fields][] : null;
    for (int i = 0; i < fields; i++) {
      names[i] = name(in);
      if (values != null) {
        values[i] = bytes(in, in.getInt());
      }
    }
  }

  private static byte[] name(ByteBuffer in) {
    return bytes(in, in.getShort() & 0xffff);
  }

  private static byte[] bytes(ByteBuffer in, int length) {
    byte[] b = new byte[length];
    in.get(b);
    return b;
  }
}
