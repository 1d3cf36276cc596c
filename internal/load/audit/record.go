package audit

import (
	"slices"

	"skerry/internal/load/ycsb"
)

type Write struct {
	Number  int64
	Version Version
	// Field is the field's number, AllFields for every field.
	Field int
	// Start and End are nanoseconds of the driver's clock.
	Start, End int64
	Outcome    Outcome
	Gone       bool // it deleted the record
}

func (w Write) covers(field int) bool { return w.Field == AllFields || w.Field == field }

// Record holds the writes of a record that may be visible, and the refused ones, which must not be.
type Record struct {
	Number int64
	Loaded bool // the load phase wrote it
	Writes []Write
}

// Kind is a kind of fault.
type Kind string

const (
	Lost       Kind = "lost"
	Unexpected Kind = "unexpected"
)

// Fault is a wrong result of a read.
type Fault struct {
	Kind Kind
	// Field is the field's number, AllFields for the whole record.
	Field int
	// Expected is the last acknowledged write. It is zero if that is the load's, or if there is
	// none.
	Expected Write
	// Saw is a version, "missing", or the start of a value without a version.
	Saw string
}

const sawMissing = "missing"

// lastAcknowledged returns the acknowledged writes of a field that no other acknowledged write
// follows. Concurrent writes can leave several.
func (r Record) lastAcknowledged(field int) (acknowledged []Write) {
	for _, w := range r.Writes {
		if w.Outcome != Acknowledged || !w.covers(field) {
			continue
		}
		if !slices.ContainsFunc(r.Writes, func(o Write) bool {
			return o.Outcome == Acknowledged && o.covers(field) && o.Start > w.End
		}) {
			acknowledged = append(acknowledged, w)
		}
	}
	return acknowledged
}

// JudgeMissing judges a missing record.
func (r Record) JudgeMissing(fields int) []Fault {
	var lost []Write
	for f := range fields {
		for _, w := range r.lastAcknowledged(f) {
			if w.Gone || slices.ContainsFunc(lost, func(o Write) bool { return o.Version == w.Version }) {
				continue
			}
			lost = append(lost, w)
		}
	}
	deleted := slices.ContainsFunc(r.Writes, func(w Write) bool { return w.Gone && w.Outcome != Refused })
	if deleted || len(lost) == 0 && !r.Loaded {
		return nil // it may be deleted, or no insert was acknowledged
	}
	if len(lost) == 0 {
		return []Fault{{Kind: Lost, Field: AllFields, Saw: sawMissing}}
	}
	var out []Fault
	for _, w := range lost {
		out = append(out, Fault{Kind: Lost, Field: w.Field, Expected: w, Saw: sawMissing})
	}
	return out
}

// Judge judges a complete record with the given field names. Each missing acknowledged write is one
// fault.
func (r Record) Judge(names []string, got []ycsb.Field) []Fault {
	var out []Fault
	for f, name := range names {
		i := slices.IndexFunc(got, func(g ycsb.Field) bool { return g.Name == name })
		var fault Fault
		wrong := false
		if i < 0 {
			fault, wrong = r.judgeField(f, nil)
		} else {
			fault, wrong = r.judgeField(f, got[i].Value)
		}
		sameLoss := func(o Fault) bool { return o.Kind == Lost && o.Expected.Version == fault.Expected.Version }
		if !wrong || fault.Kind == Lost && slices.ContainsFunc(out, sameLoss) {
			continue
		}
		out = append(out, fault)
	}
	return out
}

// judgeField judges one value; nil is a missing field.
func (r Record) judgeField(field int, value []byte) (Fault, bool) {
	last := r.lastAcknowledged(field)
	expected := Write{}
	if len(last) > 0 {
		expected = last[0]
	}
	fault := func(k Kind, saw string) (Fault, bool) {
		return Fault{Kind: k, Field: field, Expected: expected, Saw: saw}, true
	}
	v, ok := Version(0), false
	if value != nil {
		v, ok = readTag(value, r.Number, field)
	}
	switch {
	case value == nil && expected.Gone:
		return Fault{}, false
	case value == nil:
		return fault(Lost, sawMissing)
	case !ok:
		return fault(Unexpected, valuePrefix(value))
	}
	for _, w := range r.Writes {
		if w.Version != v || w.Gone || !w.covers(field) {
			continue
		}
		switch {
		case w.Outcome == Refused:
			return fault(Unexpected, v.String()+", which was refused")
		case w.Outcome == InDoubt || slices.Contains(last, w):
			return Fault{}, false
		}
	}
	switch {
	case len(last) == 0 && v == 0 && r.Loaded:
		return Fault{}, false
	case expected.Gone:
		return fault(Unexpected, v.String()+", which was deleted")
	case len(last) == 0 && v == 0:
		return fault(Unexpected, "the load's version of a record that was not loaded")
	case len(last) == 0:
		// An unknown version of a record without acknowledged writes.
		return fault(Unexpected, v.String())
	}
	return fault(Lost, v.String())
}

func valuePrefix(value []byte) string { return string(value[:min(len(value), 24)]) }
