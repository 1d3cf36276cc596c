package docgen

import (
	"cmp"
	"fmt"
	"strings"

	"skerry/internal/database"
)

// smokeWidth is what a line of a smoke experiment's comment may be long, in bytes.
const smokeWidth = 93

// written stands in every file that this package writes there.
const written = "# Written by make docs from what the database says about itself.\n"

// smokeExperiment is the file of a database in experiments/smoke.
func smokeExperiment(a database.About) []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=../../docs/experiment.schema.json\n" + written + "#\n")
	for _, line := range wrapped(a.Smoke.Text, smokeWidth-len("# ")) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	b.WriteString("#\n")
	if len(a.Recipes) > 0 {
		fmt.Fprintf(&b, "#   %s\n", installing(a))
	}
	subject := a.Name
	if a.Smoke.Options != "" {
		subject = fmt.Sprintf("{name: %s, options: %s}", a.Name, a.Smoke.Options)
	}
	fmt.Fprintf(&b, `#   skerry run experiments/smoke/%[1]s.yaml
name: smoke-%[1]s
topology: %[2]s
client: n1
database: %[3]s
workload: %[4]s
warmup: 2s
stop: {time: 10s}
`, a.Name, cmp.Or(a.Smoke.Topology, "mesh:3,rtt=5ms"), subject, cmp.Or(a.Smoke.Workload, "{name: a, records: 1000, threads: 8}"))
	return []byte(b.String())
}

// wrapped is a text in lines of at most so many bytes.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
