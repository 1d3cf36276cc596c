package load

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// series is a separately counted kind of operation. The parts of a read-modify-write have series of
// their own: they are added to READ and UPDATE in the end, but must not count twice in the totals.
type series uint8

const (
	innerRead   = series(ycsb.Kinds)
	innerUpdate = series(ycsb.Kinds) + 1
	nSeries     = treeSeries + series(mdtest.Kinds)
)

func (s series) name() string {
	switch s {
	case innerRead:
		return ycsb.Read.String()
	case innerUpdate:
		return ycsb.Update.String()
	}
	if s.isTree() {
		return mdtest.Kind(s - treeSeries).String()
	}
	return ycsb.Kind(s).String()
}

func (s series) isWhole() bool { return s < series(ycsb.Kinds) || s.isTree() }

const verifySeries = "VERIFY"

type times struct{ service, response time.Duration }

type recorderPair struct{ service, response *recorder }

func (b *recorderPair) add(t times) {
	if b.service == nil {
		b.service, b.response = newRecorder(), newRecorder()
	}
	b.service.add(t.service)
	b.response.add(t.response)
}

func (b *recorderPair) drain(l *Latency) {
	if b.service != nil {
		b.service.drain(&l.Service)
		b.response.drain(&l.Response)
	}
}

type tally struct {
	counts   [nSeries]Counts
	ok, bad  [nSeries]recorderPair
	verify   recorderPair
	verified [3]int64 // by ycsb.Verification
	late     *recorder
	retries  int64
	errors   map[errorKey]*errorTally
	writes   writeSlots
}

type errorKey struct {
	operation   string
	outcome     Outcome
	class, node string
}

type errorTally struct {
	count   int64
	example string
}

const maxErrorKeys = 256

func (t *tally) addError(s series, e *OpError) {
	k := errorKey{s.name(), e.Outcome, e.Class, e.Node}
	if t.errors == nil {
		t.errors = map[errorKey]*errorTally{}
	}
	if _, ok := t.errors[k]; !ok && len(t.errors) >= maxErrorKeys {
		k = errorKey{s.name(), e.Outcome, "other", ""}
	}
	x := t.errors[k]
	if x == nil {
		x = &errorTally{example: e.Error()}
		if e.Err != nil {
			x.example = e.Err.Error()
		}
		t.errors[k] = x
	}
	x.count++
}

func (t *tally) addOperation(s series, at times, e *OpError) {
	c := &t.counts[s]
	if e == nil {
		c.OK++
		t.ok[s].add(at)
		return
	}
	if e.Outcome == NotDone {
		c.Failed++
	} else {
		c.Unknown++
	}
	t.bad[s].add(at)
	t.addError(s, e)
}

func (t *tally) addLateness(d time.Duration) {
	if t.late == nil {
		t.late = newRecorder()
	}
	t.late.add(d)
}

// shard holds the counts of some workers. Only they contend for its lock, apart from the collector,
// which swaps two pointers once a second.
type shard struct {
	mu   sync.Mutex
	now  *tally // guarded by mu
	idle *tally // owned by the collector
	// recent holds the completions since the last disturbance sample; guarded by mu.
	recent []completion
}

func newShard() *shard { return &shard{now: &tally{}, idle: &tally{}} }

// swap returns the counts since the last swap, valid until the next one.
func (s *shard) swap() *tally {
	s.mu.Lock()
	s.now, s.idle = s.idle, s.now
	s.mu.Unlock()
	return s.idle
}

// takeRecent returns the completions since the last call. room is reused for the following ones.
func (s *shard) takeRecent(room []completion) []completion {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.recent
	s.recent = room[:0]
	return taken
}

func (s *shard) recordLateness(due, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.addLateness(now - due)
	s.recent = append(s.recent, completion{from: due, at: now, wakeup: true})
}

func (t *tally) drain(to *Totals) {
	for s := range nSeries {
		c := t.counts[s]
		if c != (Counts{}) {
			op := to.operation(s.name())
			op.Add(c)
			if c.OK > 0 {
				op.Returns[returnOK] += c.OK
			}
			if s.isWhole() {
				to.Add(c)
				var l Latency
				t.ok[s].drain(&l)
				to.Latency.Merge(l)
				op.Latency.Merge(l)
			} else {
				t.ok[s].drain(&op.Latency)
			}
			t.bad[s].drain(&op.FailedLatency)
			t.counts[s] = Counts{}
		}
	}
	if t.verified != [3]int64{} {
		op := to.operation(verifySeries)
		for v, n := range t.verified {
			if n > 0 {
				op.Returns[ycsb.Verification(v).String()] += n
			}
		}
		op.OK += t.verified[ycsb.Verified]
		op.Failed += t.verified[ycsb.Wrong] + t.verified[ycsb.Missing]
		t.verify.drain(&op.Latency)
		t.verified = [3]int64{}
	}
	if t.late != nil {
		t.late.drain(&to.Late)
	}
	to.Retries += t.retries
	t.retries = 0
	for k, e := range t.errors {
		to.addError(ErrorCount{k.operation, k.outcome, k.class, k.node, e.count, e.example})
		to.operation(k.operation).Returns[returnCode(k.class)] += e.count
	}
	clear(t.errors)
}

func (t *Totals) operation(name string) *Operation {
	if t.Operations == nil {
		t.Operations = map[string]*Operation{}
	}
	op := t.Operations[name]
	if op == nil {
		op = &Operation{Returns: map[string]int64{}}
		t.Operations[name] = op
	}
	return op
}

func (t *Totals) addError(e ErrorCount) {
	i := slices.IndexFunc(t.Errors, func(x ErrorCount) bool {
		return x.Operation == e.Operation && x.Outcome == e.Outcome && x.Class == e.Class && x.Node == e.Node
	})
	if i < 0 {
		t.Errors = append(t.Errors, e)
		slices.SortFunc(t.Errors, func(a, b ErrorCount) int {
			return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Class, b.Class),
				cmp.Compare(a.Node, b.Node), cmp.Compare(a.Outcome, b.Outcome))
		})
		return
	}
	t.Errors[i].Count += e.Count
}

func (t *Totals) Merge(o Totals) {
	t.Add(o.Counts)
	t.Retries += o.Retries
	t.Latency.Merge(o.Latency)
	t.Late.Merge(o.Late)
	t.CPU += o.CPU
	for name, op := range o.Operations {
		to := t.operation(name)
		to.Add(op.Counts)
		to.Latency.Merge(op.Latency)
		to.FailedLatency.Merge(op.FailedLatency)
		for code, n := range op.Returns {
			to.Returns[code] += n
		}
	}
	for _, e := range o.Errors {
		t.addError(e)
	}
}

// slots is the number of writeSlots in a tally, a power of two. 5 s also cover an interval that was
// flushed late.
const slots = 512

// writeSlots has a bit for every record.WriteSlot of the driver's clock, modulo slots, with an
// acknowledged write.
type writeSlots [slots / 64]uint64

func (s *writeSlots) add(at time.Duration) {
	i := uint64(at/record.WriteSlot) % slots
	s[i/64] |= 1 << (i % 64)
}

func (s series) isWrite() bool {
	if s.isTree() {
		return mdtest.Kind(s - treeSeries).Changes()
	}
	return s == series(ycsb.Update) || s == series(ycsb.Insert) || s == series(ycsb.Delete) || s == innerUpdate
}

// since appends the bits between two times to into, the first one first, and clears all.
func (s *writeSlots) since(from, to time.Duration, into []uint64) []uint64 {
	first := int64(from / record.WriteSlot)
	n := min(int64(to/record.WriteSlot)-first+1, slots)
	for int64(len(into))*64 < n {
		into = append(into, 0)
	}
	for i := range n {
		if k := uint64(first+i) % slots; s[k/64]&(1<<(k%64)) != 0 {
			into[i/64] |= 1 << (i % 64)
		}
	}
	*s = writeSlots{}
	return into
}
