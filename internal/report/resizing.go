package report

import (
	"strconv"

	"skerry/internal/record"
)

// resizeRow is one change of membership, as FHC's Fig. 13 tells it: how long the request
// took to be accepted, and how long the change to be really done.
type resizeRow struct {
	Trial, Change, Node, At, Accepted, Complete, Moved, State string
	Bad                                                       bool
}

// resizings are the changes of membership of all trials, in order.
func (m *model) resizings() (rows []resizeRow) {
	for _, t := range m.dir.Summary.Trials {
		events, err := m.dir.Events(t.ID)
		if err != nil {
			m.notes = append(m.notes, err.Error())
		}
		for _, e := range events {
			if e.Effect == nil || e.Effect.Member == "" {
				continue
			}
			for _, x := range []struct {
				change record.Membership
				step   *record.Step
			}{{e.Effect.Member, e.Apply}, {e.Effect.Member.Opposite(), e.Revert}} {
				if x.step != nil && x.step.Began != nil {
					row := resizeOf(e, x.change, x.step)
					row.Trial = strconv.Itoa(t.ID)
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

func resizeOf(e record.Event, change record.Membership, s *record.Step) resizeRow {
	row := resizeRow{Change: string(change), At: figure(s.Began.Seconds()), Accepted: none, Complete: none, Moved: none, State: "complete"}
	for i, n := range e.Targets {
		if i > 0 {
			row.Node += ", "
		}
		row.Node += n
	}
	if s.Accepted != nil {
		row.Accepted = figure(s.Accepted.Seconds() - s.Began.Seconds())
	}
	if s.Completed != nil {
		row.Complete = figure(s.Completed.Seconds() - s.Began.Seconds())
	} else {
		row.State, row.Bad = "not complete", true
		if e.State == record.EventFailed {
			row.State = "failed: " + firstLine(e.Error)
		}
	}
	if s.Bytes > 0 {
		row.Moved = megabytes(float64(s.Bytes))
	}
	return row
}

// textResizings prints the table of changes of membership, where there were any.
func (m *model) textResizings(p *printer) {
	rows := m.resizings()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "change", left: true}, {head: "node", left: true}, {head: "at s"},
		{head: "accepted after s"}, {head: "complete after s"}, {head: "moved MB", need: 1}, {head: "", left: true}}}
	for _, r := range rows {
		state := ""
		if r.Bad {
			state = plain(r.State)
		}
		t.rows = append(t.rows, []string{r.Trial, r.Change, plain(r.Node), r.At, r.Accepted, r.Complete, r.Moved, state})
	}
	p.try(t.write(p.w, 0))
	p.linef("")
}
