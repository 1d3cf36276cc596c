package mdtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"skerry/internal/load/audit"
)

// Entry is the entry Name in Dir of an area, as in Op.
type Entry struct {
	Shared bool   `json:"shared,omitempty"`
	Area   int    `json:"area"`
	Dir    string `json:"dir,omitempty"`
	Name   string `json:"name"`
}

// String returns the entry's path with the area's number: "/own/0/d1/f2".
func (e Entry) String() string {
	top := "own"
	if e.Shared {
		top = "shared"
	}
	return path.Join("/", top, fmt.Sprint(e.Area), e.Dir, e.Name)
}

// Stat returns the operation that checks whether the entry exists.
func (e Entry) Stat() *Op {
	return &Op{Kind: Stat, Shared: e.Shared, Area: e.Area, Dir: e.Dir, Name: e.Name}
}

// Claim states whether an entry must exist at the end.
type Claim struct {
	Entry
	There bool `json:"there"`
}

// maxGone bounds the removed entries that a ledger claims. The last ones count.
const maxGone = 10_000

// TreeLedger records the effect of one worker's acknowledged changes. No other worker changes these
// names. The ledger makes no claim about entries that were in doubt once.
type TreeLedger struct {
	mu     sync.Mutex
	there  map[Entry]bool
	gone   []Entry // a ring of maxGone entries
	next   int     // index in gone
	counts audit.Counts
}

func NewTreeLedger() *TreeLedger { return &TreeLedger{there: make(map[Entry]bool)} }

// Begin must be called before a change is sent, and the returned function once with its outcome.
// Until then the change is in doubt.
func (l *TreeLedger) Begin(op Op) (ended func(audit.Outcome)) {
	from := Entry{op.Shared, op.Area, op.Dir, op.Name}
	to := from
	to.Name = op.To
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.there[from]
	delete(l.there, from)
	l.counts.InDoubt++
	return func(o audit.Outcome) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch o {
		case audit.InDoubt:
			return
		case audit.Refused:
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

func (l *TreeLedger) addGone(e Entry) {
	if len(l.gone) < maxGone {
		l.gone = append(l.gone, e)
		return
	}
	l.gone[l.next] = e
	l.next = (l.next + 1) % maxGone
}

// SaveClaims writes the sum of the ledgers' counts, which it returns, and then their claims, one
// JSON value per line.
func SaveClaims(w io.Writer, ledgers []*TreeLedger) (all audit.Counts, err error) {
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

// ReadClaims reads the output of SaveClaims and calls do for each claim.
func ReadClaims(r io.Reader, do func(Claim) error) (all audit.Counts, err error) {
	d := json.NewDecoder(bufio.NewReader(r))
	if err = d.Decode(&all); err != nil {
		return all, fmt.Errorf("read the claims on a tree: %w", err)
	}
	for {
		var c Claim
		if err = d.Decode(&c); errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("read the claims on a tree: %w", err)
		}
		if err = do(c); err != nil {
			return all, err
		}
	}
}
