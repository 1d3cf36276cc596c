package check

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/machine/doctor"
)

// Write prints the report for people: a line a machine, what it lacks, and a line a pair.
func (r Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MACHINE\tSITE\tADDRESS\tCORES\tMEMORY\tKERNEL\tENGINE\tCLOCK")
	for _, m := range r.Machines {
		if m.Agent.Version == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\t-\t-\t-\n", m.Name, dash(m.Site), dash(m.Addr))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f GiB\t%s %s\t%s\t%s\n", m.Name, dash(m.Site), dash(m.Addr), m.Agent.Cores, float64(m.Agent.Memory)/(1<<30),
			m.Agent.Kernel, m.Agent.Arch, dash(m.Doctor.Engine), clock(m.Clock.Offset, m.Clock.Uncertainty))
	}
	if len(r.Pairs) > 0 {
		fmt.Fprintln(t, "\nFROM\tTO\tRTT MIN\tMEDIAN\tMAX\tLOST\tBANDWIDTH")
	}
	for _, p := range r.Pairs {
		if p.Sent == p.Lost {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t%d of %d\t-\n", p.From, p.To, p.Lost, p.Sent)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", p.From, p.To, ms(p.Min), ms(p.Median), ms(p.Max), p.Lost, p.Sent, bandwidth(p.Bandwidth))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeProblems(w)
}

// writeProblems prints what is wrong, and what to do about it.
func (r Report) writeProblems(w io.Writer) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	for _, m := range r.Machines {
		if m.Problem != "" {
			line("\n%s\n", m.Problem)
			if m.Mend != "" {
				line("  -> %s\n", m.Mend)
			}
		}
		for _, f := range m.Doctor.Findings {
			if f.State != doctor.OK && f.Mend != "" && f.State != doctor.Missing {
				line("%s: %s: %s\n  -> %s\n", m.Name, f.Name, f.Detail, f.Mend)
			}
		}
	}
	for _, p := range r.Pairs {
		if p.Problem != "" {
			line("%s to %s: %s\n", p.From, p.To, p.Problem)
		}
	}
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func clock(offset, uncertainty time.Duration) string {
	return fmt.Sprintf("%+.2f ± %.2f ms", float64(offset)/1e6, float64(uncertainty)/1e6)
}

func bandwidth(bps int64) string {
	if bps == 0 {
		return "-"
	}
	return unit.Bandwidth(bps - bps%1e6).String()
}
