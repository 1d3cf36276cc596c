package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Write prints the report for people: a line a finding, what mends it below, and the
// conclusion at the end.
func (r Report) Write(w io.Writer) error {
	name, state := 0, len(Missing)
	for _, f := range r.Findings {
		name = max(name, len(f.Name))
	}
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", name, f.Name, state, f.State, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(&b, "%-*s  %-*s  -> %s\n", name, "", state, "", f.Mend)
		}
	}
	why := r.Why
	if why != "" {
		why = strings.ToUpper(why[:1]) + why[1:]
	}
	fmt.Fprintf(&b, "\n%s.\n", why)
	_, err := io.WriteString(w, b.String())
	return err
}
