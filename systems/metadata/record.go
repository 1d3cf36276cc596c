package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"skerry/internal/base/varint"
)

// ErrRecord marks bytes that are not a command's.
var ErrRecord = errors.New("not a command's record")

// recordVersion is the first byte of every record.
const recordVersion = 1

// Bits of the flags in a record.
const (
	flagParents = 1 << iota
	flagRecursive
	flagReplace
	flagExclusive
	flagAcross
	flagIdentity
)

// AppendRecord appends a changing command as journals hold it:
//
//	version, op, flags (a byte each), mode (2 bytes), time (8 bytes), all little-endian,
//	then path, to, owner and data, each with its length (uvarint) before it, and of a command
//	with an identity that, too, and seen (uvarint)
func (c Command) AppendRecord(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{c.Parents, c.Recursive, c.Replace, c.Exclusive, c.Across, c.Identity != ""} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, recordVersion, byte(c.Op), flags)
	b = binary.LittleEndian.AppendUint16(b, c.Mode)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Time))
	b = varint.AppendText(b, c.Path)
	b = varint.AppendText(b, c.To)
	b = varint.AppendText(b, c.Owner)
	b = varint.AppendText(b, c.Data)
	if c.Identity != "" {
		b = varint.Append(varint.AppendText(b, c.Identity), c.Seen)
	}
	return b
}

// ParseRecord reads what AppendRecord wrote. Data is part of b.
func ParseRecord(b []byte) (Command, error) {
	const fixed = 3 + 2 + 8
	if len(b) < fixed || b[0] != recordVersion {
		return Command{}, ErrRecord
	}
	c := Command{Op: Op(b[1]), MaxDepth: -1}
	c.Parents, c.Recursive, c.Replace, c.Exclusive = b[2]&flagParents != 0, b[2]&flagRecursive != 0, b[2]&flagReplace != 0, b[2]&flagExclusive != 0
	c.Across = b[2]&flagAcross != 0
	c.Mode = binary.LittleEndian.Uint16(b[3:])
	c.Time = int64(binary.LittleEndian.Uint64(b[5:]))
	r := varint.NewReader(b[fixed:])
	c.Path, c.To, c.Owner, c.Data = r.Text(), r.Text(), r.Text(), r.Bytes()
	if b[2]&flagIdentity != 0 {
		c.Identity, c.Seen = r.Text(), r.Number()
	}
	if !r.Done() || !c.Op.Changes() {
		return Command{}, ErrRecord
	}
	if len(c.Data) == 0 {
		c.Data = nil
	}
	return c, nil
}

// AppendBatch appends changing commands as one record: each with its length (uvarint)
// before it. They become durable together.
func AppendBatch(b []byte, commands []Command) []byte {
	var one []byte
	for _, c := range commands {
		one = c.AppendRecord(one[:0])
		b = varint.AppendText(b, one)
	}
	return b
}

// ParseBatch calls do for the commands of what AppendBatch wrote, in order.
func ParseBatch(b []byte, do func(Command)) error {
	for r := varint.NewReader(b); r.More(); {
		c, err := ParseRecord(r.Bytes())
		if err != nil {
			return err
		}
		do(c)
	}
	return nil
}

// Verb is what a step of a transaction asks a server for.
type Verb byte

// The verbs. Their numbers are in journals.
const (
	// Prepare locks the command's Path and To, and the paths of Commands, which are to be
	// run if the transaction is committed: it promises that they can be. The result has the
	// entry at Path, if there is one, and behind it the virtual directories below it, with
	// their paths; Data has the content of a file.
	Prepare Verb = 1
	// Commit, of the coordinator, which is prepared, runs Commands and decides: from then on
	// the transaction is done. Servers are the others that are prepared.
	Commit Verb = 2
	// Finish has a server that is prepared run its commands. One that is not has done so.
	Finish Verb = 3
	// Abort lets go of what is prepared.
	Abort Verb = 4
	// Resolve asks the coordinator: Data of the result is Committed, Aborted or Pending. It
	// aborts what is Pending where Entry is that of its last step: who asks so has seen the
	// lease go by without another. The same goes for a watch.
	Resolve Verb = 5
	// Forget drops the decision: all servers have finished.
	Forget Verb = 6
	// Watch, of the server that has the directory at the command's path, notes from then on
	// what is changed in it, until the transaction ends or for the lease; nothing is locked.
	// The first, with First, has the directory's entry as its result, each later one in Data
	// what was changed since the one before, as AppendChange writes it.
	Watch Verb = 7
	// Recall asks whether a change with the identity Txn was made: Data of the result is Committed,
	// and its entries are those of the change.
	Recall Verb = 8
)

// What Resolve is answered.
const (
	Committed = "committed"
	Aborted   = "aborted"
	Pending   = "pending"
)

// Step is a step of a transaction between servers, as Transact has it in Data.
type Step struct {
	Verb        Verb
	Txn         string    // its name; that of an older transaction is less
	Coordinator string    // Prepare: the server that decides, "" for the one that is asked
	Lease       int64     // Prepare, Watch: ns for which its servers leave it to who began it
	Entry       uint64    // Resolve: Txn.Since of a lease that is over, AnyEntry to ask alone; Recall: Command.Seen
	First       bool      // Prepare: the transaction holds nothing elsewhere, and may wait; Watch: begin
	Servers     []string  // Commit
	Commands    []Command // Prepare, Commit
}

// AnyEntry is no entry's index.
const AnyEntry = math.MaxUint64

// Command is the command that asks for the step, with paths to lock.
func (s Step) Command(path, to string) Command {
	return Command{Op: Transact, Path: path, To: to, Data: s.append(nil), MaxDepth: -1}
}

// append appends verb, first (a byte each), lease or, of Resolve, entry (uvarint), the texts with their lengths
// before them, and the commands as AppendBatch does.
func (s Step) append(b []byte) []byte {
	first := byte(0)
	if s.First {
		first = 1
	}
	number := uint64(s.Lease)
	if s.Verb == Resolve || s.Verb == Recall {
		number = s.Entry
	}
	b = varint.Append(append(b, byte(s.Verb), first), number)
	b = varint.AppendText(varint.AppendText(b, s.Txn), s.Coordinator)
	b = varint.Append(b, uint64(len(s.Servers)))
	for _, name := range s.Servers {
		b = varint.AppendText(b, name)
	}
	return AppendBatch(b, s.Commands)
}

// ParseStep reads the step of a Transact command; its commands are checked.
func ParseStep(b []byte) (Step, error) {
	if len(b) < 2 || b[0] < byte(Prepare) || b[0] > byte(Recall) {
		return Step{}, fmt.Errorf("%w step: %w", ErrInvalid, ErrRecord)
	}
	r := varint.NewReader(b[2:])
	s := Step{Verb: Verb(b[0]), First: b[1] == 1}
	if s.Verb == Resolve || s.Verb == Recall {
		s.Entry = r.Number()
	} else {
		s.Lease = int64(r.Number())
	}
	s.Txn, s.Coordinator = r.Text(), r.Text()
	for n := r.Number(); n > 0 && !r.Bad(); n-- {
		s.Servers = append(s.Servers, r.Text())
	}
	if r.Bad() || s.Txn == "" {
		return Step{}, fmt.Errorf("%w step: %w", ErrInvalid, ErrRecord)
	}
	var wrong error
	err := ParseBatch(r.Rest(), func(c Command) {
		if err := c.Check(); err != nil && wrong == nil {
			wrong = err
		}
		s.Commands = append(s.Commands, c)
	})
	if err == nil {
		err = wrong
	}
	return s, err
}

// Txn is a transaction as one server has it.
type Txn struct {
	Name        string   `json:"name"`
	Coordinator string   `json:"coordinator,omitempty"` // "" for this server
	Since       uint64   `json:"since"`                 // index in the log of its last step, which began its lease
	Lease       int64    `json:"lease_ns"`              // when it is over, by a monotonic clock, its end is asked for
	Watching    bool     `json:"watching,omitempty"`    // it holds nothing, and notes what is changed
	Locks       []string `json:"locks,omitempty"`       // paths of the server's own tree
	Committed   bool     `json:"committed,omitempty"`   // by this server, its coordinator
	Servers     []string `json:"servers,omitempty"`     // that may not have finished, of one that was committed
}

// AppendChange appends a path that was changed: a line, since no name has control
// characters. deep says that what is below it may be another, too.
func AppendChange(b []byte, path string, deep bool) []byte {
	if deep {
		b = append(b, '*')
	}
	return append(append(b, path...), '\n')
}

// ParseChanges reads what AppendChange wrote: deep by path.
func ParseChanges(b []byte) map[string]bool {
	changed := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		path, deep := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "*")
		changed[path] = deep
	}
	return changed
}
