package mdtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
)

// Entry is an entry of a tree: Name in Dir of an area, as in Op.
type Entry struct {
	Shared bool   `json:"shared,omitempty"`
	Area   int    `json:"area"`
	Dir    string `json:"dir,omitempty"`
	Name   string `json:"name"`
}

// String is the entry's path with the area's number in place of its name: "/own/0/d1/f2".
func (e Entry) String() string {
	top := "own"
	if e.Shared {
		top = "shared"
	}
	return path.Join("/", top, fmt.Sprint(e.Area), e.Dir, e.Name)
}

// Stat is the operation that tells whether the entry is there.
func (e Entry) Stat() *Op {
	return &Op{Kind: Stat, Shared: e.Shared, Area: e.Area, Dir: e.Dir, Name: e.Name}
}

// Claim is what must be in the end.
type Claim struct {
	Entry
	There bool `json:"there"`
}

// Outcome is what became of a change.
type Outcome uint8

// Outcomes.
const (
	Acknowledged Outcome = iota
	InDoubt              // it may have happened, and may still
	Refused              // it did not happen
)

// Counts are changes by outcome.
type Counts struct {
	Acknowledged int64 `json:"acknowledged"`
	InDoubt      int64 `json:"in_doubt"`
	Refused      int64 `json:"refused"`
}

// maxGone is how many entries a ledger claims to be gone at most: those that went last.
const maxGone = 10_000

// Ledger knows what one worker's acknowledged changes have left. Nobody else changes the
// names that a worker makes. What was in doubt once is never claimed.
type Ledger struct {
	mu     sync.Mutex
	there  map[Entry]bool
	gone   []Entry // a ring, once it has maxGone
	next   int     // of gone
	counts Counts
}

// NewLedger knows nothing.
func NewLedger() *Ledger { return &Ledger{there: make(map[Entry]bool)} }

// Begin must be called before a change is sent, and what it returns once with its outcome.
// Until then the change is in doubt.
func (l *Ledger) Begin(op Op) (ended func(Outcome)) {
	from := Entry{op.Shared, op.Area, op.Dir, op.Name}
	to := from
	to.Name = op.To
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.there[from]
	delete(l.there, from)
	l.counts.InDoubt++
	return func(o Outcome) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch o {
		case InDoubt:
			return
		case Refused:
			l.counts.InDoubt--
			l.counts.Refused++
			if known {
				l.there[from] = was
			}
			return
		}
		l.counts.InDoubt--
		l.counts.Acknowledged++
		switch op.Kind {
		case Create, Mkdir:
			l.there[from] = true
		case Rename:
			l.there[to] = true
			l.addGone(from)
		case Remove, Rmdir:
			l.addGone(from)
		}
	}
}

func (l *Ledger) addGone(e Entry) {
	if len(l.gone) < maxGone {
		l.gone = append(l.gone, e)
		return
	}
	l.gone[l.next] = e
	l.next = (l.next + 1) % maxGone
}

// SaveClaims writes what ledgers claim, a JSON value a line, behind the counts of their changes,
// which it returns.
func SaveClaims(w io.Writer, ledgers []*Ledger) (all Counts, err error) {
	for _, l := range ledgers {
		l.mu.Lock()
		all.Acknowledged += l.counts.Acknowledged
		all.InDoubt += l.counts.InDoubt
		all.Refused += l.counts.Refused
		l.mu.Unlock()
	}
	b := bufio.NewWriter(w)
	to := json.NewEncoder(b)
	err = to.Encode(all)
	for _, l := range ledgers {
		l.mu.Lock()
		for e := range l.there {
			err = errors.Join(err, to.Encode(Claim{e, true}))
		}
		for _, e := range l.gone {
			err = errors.Join(err, to.Encode(Claim{e, false}))
		}
		l.mu.Unlock()
	}
	return all, errors.Join(err, b.Flush())
}

// ReadClaims reads what Save wrote, and calls do for each claim.
func ReadClaims(r io.Reader, do func(Claim) error) (all Counts, err error) {
	d := json.NewDecoder(bufio.NewReader(r))
	if err = d.Decode(&all); err != nil {
		return all, fmt.Errorf("reading what must be in a tree: %w", err)
	}
	for {
		var c Claim
		if err = d.Decode(&c); errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("reading what must be in a tree: %w", err)
		}
		if err = do(c); err != nil {
			return all, err
		}
	}
}
