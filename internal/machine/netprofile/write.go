package netprofile

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Write prints the portrait for people: a line a pair, and what could not be measured.
func (p Portrait) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tTO\tRTT P5\tMEDIAN\tP95\tP99\tMAX\tJITTER, ONE WAY\tLOST\tTHERE\tBACK")
	for _, x := range p.Pairs {
		if x.Sent == x.Lost {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t%d of %d\t-\t-\n", x.From, x.To, x.Lost, x.Sent)
			continue
		}
		jitter := "none"
		if x.Shape.JitterMS > 0 {
			jitter = fmt.Sprintf("%.2f ms, %s", x.Shape.JitterMS, x.Shape.Distribution)
		}
		q := x.RTT
		fmt.Fprintf(t, "%s\t%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%s\t%d of %d\t%s\t%s\n", x.From, x.To, q.P5, q.P50, q.P95, q.P99, q.Max, jitter, x.Lost, x.Sent, told(x.There), told(x.Back))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var problems []string
	for _, m := range p.Machines {
		if m.Problem != "" {
			problems = append(problems, m.Problem)
		}
	}
	for _, x := range p.Pairs {
		if x.Problem != "" {
			problems = append(problems, fmt.Sprintf("%s to %s: %s", x.From, x.To, x.Problem))
		}
	}
	for _, s := range problems {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	return nil
}

func told(bps int64) string {
	if bps == 0 {
		return "-"
	}
	return rate(bps)
}

// Whole tells whether all machines were reached and each two have answered each other.
func (p Portrait) Whole() bool {
	for _, m := range p.Machines {
		if m.Problem != "" {
			return false
		}
	}
	for _, x := range p.Pairs {
		if x.Sent == x.Lost {
			return false
		}
	}
	return true
}
