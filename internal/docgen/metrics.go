package docgen

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/evidence/assert"
	"skerry/internal/record/metric"
)

// metricOrigin is where the table of metrics comes from.
const metricOrigin = "the metrics in internal/record/metric"

// metricTable is the table of docs/assertions.md.
func metricTable() string {
	var b strings.Builder
	b.WriteString("| metric | value | |\n|---|---|---|\n")
	ofTrial, ofOperation, ofEvent := metric.Docs()
	for _, d := range slices.Concat(ofTrial, ofOperation, ofEvent) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, valueOf[d.Unit], d.Text)
	}
	return b.String()
}

// valueOf says how values of a unit are written.
var valueOf = map[metric.Unit]string{
	metric.Number: "a number: `0`", metric.Rate: "a rate: `5000/s`", metric.Time: "a time: `300ms`, `60s`",
	metric.Share: "a share: `99.9%`", metric.Bytes: "a size: `12MB`, `1GiB`", metric.Cores: "cores: `1.5`",
}

const operatorOrigin = "the operators in internal/evidence/assert"

// operatorTable is the other table of docs/assertions.md.
func operatorTable() string {
	means := map[string]string{"<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "==": "exactly", "!=": "anything but"}
	var b strings.Builder
	b.WriteString("| operator | the figure is |\n|---|---|\n")
	for _, op := range assert.Operators() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", op, means[op])
	}

	return b.String()
}
