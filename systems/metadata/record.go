package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"skerry/internal/base/varint"
)

var ErrRecord = errors.New("invalid command record")

const recordVersion = 1

const (
	flagParents = 1 << iota
	flagRecursive
	flagReplace
	flagExclusive
	flagAcross
	flagIdentity
)

// AppendRecord appends the binary form of a change, as logs contain it:
//
//	version, op, flags (a byte each), mode (2 bytes), time (8 bytes), all little-endian,
//	then path, to, owner and data, each preceded by its length (uvarint);
//	if the command has an identity: identity (likewise) and seen (uvarint)
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

// ParseRecord decodes AppendRecord's output. Data aliases b.
func ParseRecord(b []byte) (Command, error) {
	const fixed = 3 + 2 + 8
	if len(b) < fixed || b[0] != recordVersion {
		return Command{}, ErrRecord
	}
	c := Command{Op: Op(b[1]), MaxDepth: -1}
	c.Parents, c.Recursive, c.Replace, c.Exclusive = b[2]&flagParents != 0, b[2]&flagRecursive != 0, b[2]&flagReplace != 0,
		b[2]&flagExclusive != 0
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

// AppendBatch appends changes as one record, each preceded by its length (uvarint). They become durable together.
func AppendBatch(b []byte, commands []Command) []byte {
	var one []byte
	for _, c := range commands {
		one = c.AppendRecord(one[:0])
		b = varint.AppendText(b, one)
	}
	return b
}

// ParseBatch calls do for each command of AppendBatch's output, in order.
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

// Verb is the kind of a transaction step.
type Verb byte

// Verbs. Their numbers are in logs on disk.
const (
	// Prepare locks the command's Path and To and the paths of Commands, which run when the transaction commits. Success
	// is a promise that they will succeed. The result has the entry at Path, if any, followed by the virtual directories
	// below it with their paths. Data has the content of a file.
	Prepare Verb = 1
	// Commit runs Commands on the prepared coordinator and decides. Servers are the other prepared servers.
	Commit Verb = 2
	// Finish runs the commands of a prepared server. On a server that is not prepared, they have already run.
	Finish Verb = 3
	// Abort releases what is prepared.
	Abort Verb = 4
	// Resolve asks the coordinator for the outcome: Data of the result is Committed, Aborted or Pending. If Entry is the
	// index of the last step of a pending transaction, Resolve aborts it: the caller has seen the lease expire without
	// another step. The same applies to a watch.
	Resolve Verb = 5
	// Forget drops the decision after all servers have finished.
	Forget Verb = 6
	// Watch makes the server of the command's path record changes in that directory until the transaction ends or the
	// lease expires. It locks nothing. The first step, with First, returns the directory's entry. Each later step returns
	// in Data the changes since the previous one, as AppendChange writes them.
	Watch Verb = 7
	// Recall asks whether the change with identity Txn was made: if so, Data is Committed, with the change's entries.
	Recall Verb = 8
)

// Answers to Resolve.
const (
	Committed = "committed"
	Aborted   = "aborted"
	Pending   = "pending"
)

// Step is one step of a transaction between servers. Transact commands carry it in Data.
type Step struct {
	Verb        Verb
	Txn         string // name; older transactions have smaller names
	Coordinator string // Prepare: deciding server, "" for the receiver
	Lease       int64  // Prepare, Watch: ns during which servers leave the transaction to its router
	Entry       uint64 // Resolve: Txn.Since of an expired lease, or AnyEntry; Recall: Command.Seen
	First       bool   // Prepare: the transaction holds no locks and may wait; Watch: begin
	Servers     []string
	Commands    []Command
}

// AnyEntry never is the index of an entry. Resolve with AnyEntry only asks.
const AnyEntry = math.MaxUint64

// Command returns the Transact command of the step, with two paths to lock.
func (s Step) Command(path, to string) Command {
	return Command{Op: Transact, Path: path, To: to, Data: s.append(nil), MaxDepth: -1}
}

// append encodes verb and first (a byte each), lease (or entry for Resolve and Recall, uvarint), the texts with their
// lengths, and the commands as AppendBatch does.
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

// ParseStep decodes the step of a Transact command, and checks its commands.
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

// Txn is the state of a transaction on one server.
type Txn struct {
	Name        string   `json:"name"`
	Coordinator string   `json:"coordinator,omitempty"` // "" for this server
	Since       uint64   `json:"since"`                 // log index of the last step, which started the lease
	Lease       int64    `json:"lease_ns"`              // after this time on a monotonic clock, the transaction is resolved
	Watching    bool     `json:"watching,omitempty"`    // a watch: it holds no locks
	Locks       []string `json:"locks,omitempty"`       // paths in the server's own tree
	Committed   bool     `json:"committed,omitempty"`   // decided by this server, the coordinator
	Servers     []string `json:"servers,omitempty"`     // Committed: servers that may not have finished
}

// AppendChange appends the line of a changed path. deep: everything below it may have changed.
func AppendChange(b []byte, path string, deep bool) []byte {
	if deep {
		b = append(b, '*')
	}
	return append(append(b, path...), '\n')
}

// ParseChanges decodes AppendChange's output: deep by path.
func ParseChanges(b []byte) map[string]bool {
	changed := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		path, deep := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "*")
		changed[path] = deep
	}
	return changed
}
