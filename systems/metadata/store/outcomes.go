package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

const (
	// Limits of remembered outcomes: several seconds. A client detects a hung replica in three.
	maxOutcomes     = 1 << 16
	maxOutcomeBytes = 16 << 20
)

type outcome struct {
	Identity string          `json:"identity"`
	About    string          `json:"about"` // paths: a router sends one change to several servers
	Index    uint64          `json:"index"` // of its record
	Answer   protocol.Result `json:"answer"`
	result   metadata.Result
}

func (o *outcome) key() string { return o.Identity + " " + o.About }

func (o *outcome) size() int {
	n := len(o.Identity) + len(o.About) + len(o.result.Data)
	for _, e := range o.result.Entries {
		n += len(e.Name) + len(e.Owner)
	}
	return n + 256
}

// outcomeCache has the outcomes of the most recent changes with identities. The machine's methods own it.
type outcomeCache struct {
	outcomes  map[string]*outcome // by key
	done      map[string]*outcome // by identity: successful changes
	order     []*outcome
	bytes     int
	forgotten uint64 // index of the last forgotten outcome
}

func newOutcomeCache() *outcomeCache {
	return &outcomeCache{outcomes: make(map[string]*outcome), done: make(map[string]*outcome)}
}

func commandKey(c metadata.Command) string {
	if c.Op == metadata.Transact {
		if step, err := metadata.ParseStep(c.Data); err == nil {
			return fmt.Sprint(step.Verb, " ", step.Txn, " ", c.Path)
		}
	}
	return c.Path + " " + c.To
}

// lookup returns the outcome of a command that was applied before, or an error if that is no longer known.
func (r *outcomeCache) lookup(c metadata.Command) (_ metadata.Result, known bool) {
	if o := r.outcomes[c.Identity+" "+commandKey(c)]; o != nil {
		return o.cloneResult(), true
	}
	if r.done[metadata.OriginalIdentity(c.Identity)] != nil {
		return metadata.Result{Err: fmt.Errorf("%w: the change was made before", metadata.ErrStale)}, true
	}
	if c.Seen < r.forgotten {
		return metadata.Result{Err: fmt.Errorf("%w: nothing was changed", metadata.ErrStale)}, true
	}
	return metadata.Result{}, false
}

func (o *outcome) cloneResult() metadata.Result {
	r := o.result
	r.Entries = slices.Clone(r.Entries)
	return r
}

func (r *outcomeCache) remember(c metadata.Command, index uint64, result metadata.Result) {
	o := &outcome{Identity: c.Identity, About: commandKey(c), Index: index, result: result}
	o.result = o.cloneResult()
	r.add(o)
}

func (r *outcomeCache) add(o *outcome) {
	r.outcomes[o.key()] = o
	if o.result.Err == nil {
		r.done[metadata.OriginalIdentity(o.Identity)] = o
	}
	r.order, r.bytes = append(r.order, o), r.bytes+o.size()
	for len(r.order) > maxOutcomes || r.bytes > maxOutcomeBytes {
		old := r.order[0]
		r.order[0] = nil
		r.order, r.bytes, r.forgotten = r.order[1:], r.bytes-old.size(), old.Index
		delete(r.outcomes, old.key())
		if first := metadata.OriginalIdentity(old.Identity); r.done[first] == old {
			delete(r.done, first)
		}
	}
}

// recallChange answers a router that asks whether a change was made.
func (r *outcomeCache) recallChange(identity string, seen uint64) metadata.Result {
	if o := r.done[identity]; o != nil {
		result := o.cloneResult()
		result.Data = []byte(metadata.Committed)
		return result
	}
	if seen < r.forgotten {
		return metadata.Result{Err: metadata.ErrStale}
	}
	return metadata.Result{}
}

type outcomeImage struct {
	Forgotten uint64     `json:"forgotten"`
	Outcomes  []*outcome `json:"outcomes"`
}

// snapshot copies the cache, so that it can be written while the cache changes.
func (r *outcomeCache) snapshot() *outcomeImage {
	if len(r.order) == 0 && r.forgotten == 0 {
		return nil
	}
	return &outcomeImage{r.forgotten, slices.Clone(r.order)}
}

func (m *outcomeImage) encode() ([]byte, error) {
	written := outcomeImage{Forgotten: m.Forgotten, Outcomes: make([]*outcome, len(m.Outcomes))}
	for i, o := range m.Outcomes {
		written.Outcomes[i] = &outcome{Identity: o.Identity, About: o.About, Index: o.Index, Answer: protocol.EncodeResult(o.result)}
	}
	return json.Marshal(written)
}

func decodeOutcomes(text []byte) (*outcomeCache, error) {
	var m outcomeImage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	r := newOutcomeCache()
	r.forgotten = m.Forgotten
	for _, o := range m.Outcomes {
		var err error
		if o.result, err = o.Answer.Decode(); err != nil {
			return nil, err
		}
		o.Answer = protocol.Result{}
		r.add(o)
	}
	return r, nil
}
