package cloudsql

import (
	"context"
	"fmt"

	"skerry/internal/base/advice"
	"skerry/systems/hydra/command"
)

// The bytes of the log say little of the work that an entry makes: 4,096 merges of a few bytes
// each may be of rows of 1 MiB, and so read and write 4 GiB. What a transaction may touch is
// bounded by command.MaxWeight, for all clouds alike; the rest is this database's own affair.
const (
	// batchWeight is after how many bytes of rows a batch ends, whatever it has been given.
	batchWeight = 32 << 20
	// prefetchWeight is how many bytes of rows are read in advance.
	prefetchWeight = 16 << 20
	// statementWeight is how many bytes of rows one statement writes, if it writes several.
	statementWeight = 4 << 20
	// leastPacket is the least that a server of MySQL's kind must take in one packet: a row.
	leastPacket = 2 << 20
)

// BoundAfter says after which entry the weight of a transaction's rows is bounded, so that
// those before it do what they did where a version applied them that knew no bound.
func (s *Store) BoundAfter(index uint64) { s.boundAfter.Store(index) }

// most is the weight of rows that an entry may touch, 0 for any.
func (s *Store) most(index uint64) int {
	if index <= s.boundAfter.Load() {
		return 0
	}
	return command.MaxWeight
}

// fitting is how many rows, of three arguments each, are written in one statement.
func (s *Store) fitting(args []any) int {
	rows := len(args) / 3
	for _, n := range chunks {
		if n <= rows && (n == 1 || weigh(args[:3*n]) <= s.statementBytes) {
			return n
		}
	}
	return 1
}

// weigh is the size of rows' keys and values.
func weigh(args []any) (size int) {
	for i := 0; i+2 < len(args); i += 3 {
		key, _ := args[i].(string)
		value, _ := args[i+2].(string)
		size += len(key) + len(value)
	}
	return size
}

// packet finds out how much a server of MySQL's kind takes at once.
func (s *Store) packet(ctx context.Context) error {
	if s.dialect != &mysqlDialect {
		return nil
	}
	var packet int
	if err := s.write.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err != nil {
		return fmt.Errorf("reading max_allowed_packet: %w", err)
	}
	if packet < leastPacket {
		return advice.With(fmt.Errorf("%w: max_allowed_packet is %d bytes, and a row with its statement takes up to %d", ErrPacket, packet, leastPacket),
			"set max_allowed_packet = 16M at the server")
	}
	s.statementBytes = min(s.statementBytes, packet/4)
	return nil
}
