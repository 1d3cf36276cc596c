package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"skerry/internal/database"
	"skerry/internal/database/custom"
	"skerry/internal/event"
	"skerry/internal/lab"
	"skerry/internal/lab/overlay"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// ErrMark means that a page lacks the marker line of a generated table.
var ErrMark = errors.New("missing marker line")

// replaceTable returns a function that replaces the table below the line
//
//	<!-- Made by "make docs" from SOURCE. -->
func replaceTable(source string, table func() string) func([]byte) ([]byte, error) {
	mark := fmt.Sprintf("<!-- Made by \"make docs\" from %s. -->\n", source)
	place := regexp.MustCompile(regexp.QuoteMeta(mark) + `(\|.*\n)*`)
	return func(page []byte) ([]byte, error) {
		if !place.Match(page) {
			return nil, fmt.Errorf("%w %s", ErrMark, strings.TrimSpace(mark))
		}
		return place.ReplaceAllLiteral(page, []byte(mark+table())), nil
	}
}

func databaseTable(all []database.About) string {
	var b strings.Builder
	b.WriteString("| database | installed by | scan | join and leave | replicas | smallest cluster |\n|---|---|---|---|---|---|\n")
	for _, a := range all {
		can, r := a.New().Capabilities(), a.Row
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", a.Name, strings.TrimSpace(installText(a)+" "+r.Note),
			capabilityText(r.Scan, can.Scan), capabilityText(r.Resize, can.Resize), capabilityText(r.Replicas, can.Replication),
			smallest(r.Smallest, can.MinNodes))
	}
	return b.String()
}

func protocolTable(all []database.About) string {
	rows := []string{fmt.Sprintf("| `%s` | records over HTTP, see below |", custom.HTTPKV)}
	for _, a := range all {
		if a.Protocol != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | `%s` |", a.Protocol, a.Name))
		}
	}
	slices.Sort(rows)
	return "| protocol | the client of |\n|---|---|\n" + strings.Join(rows, "\n") + "\n"
}

func capabilityText(words string, can bool) string {
	switch {
	case words != "":
		return words
	case can:
		return "yes"
	}
	return "no"
}

func smallest(words string, nodes int) string {
	switch {
	case words != "":
		return words
	case nodes == 1:
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

func installText(a database.About) string {
	if len(a.Recipes) == 0 {
		return "nothing: it is built and packaged with skerry"
	}
	r, command := a.Recipes[0], "`"+installCommand(a)+"`"
	switch {
	case !r.Fetched():
		return "your own " + r.Programs[0] + ": " + command
	case r.Build != nil:
		return command + ", which compiles"
	}
	return command
}

func installCommand(a database.About) string {
	command := "skerry install " + a.Name
	switch r := a.Recipes[0]; {
	case !r.Fetched():
		return command + " --from PATH"
	case r.Build != nil:
		return command + " --build"
	}
	return command
}

func replaceEventTables(page []byte) ([]byte, error) {
	for _, section := range event.Sections() {
		place := regexp.MustCompile(`(?m)(^## ` + string(section) + `\n\n)(<!-- .* -->\n)?(\|.*\n)+`)
		if !place.Match(page) {
			return nil, fmt.Errorf("docs/events.md: no table below %q", section)
		}
		page = place.ReplaceAllFunc(page, func([]byte) []byte {
			return fmt.Appendf(nil, "## %s\n\n<!-- Made by \"make docs\" from the kinds in internal/event. -->\n%s", section, kindTable(section))
		})
	}
	return page, nil
}

// kindTable has a row for each example of a section's kinds. The name is in the first row of a
// kind.
func kindTable(section event.Section) string {
	var b strings.Builder
	b.WriteString("| kind | example | |\n|---|---|---|\n")
	for _, k := range event.Kinds() {
		if k.Docs.Section != section {
			continue
		}
		name := "`" + k.Name + "`"
		for _, row := range k.Docs.Rows {
			examples := make([]string, len(row.Examples))
			for i, e := range row.Examples {
				examples[i] = "`" + e + "`"
			}
			for _, text := range []string{name, strings.Join(examples, ", "), row.Text} {
				b.WriteString("| ")
				if text != "" {
					b.WriteString(text + " ")
				}
			}
			b.WriteString("|\n")
			name = ""
		}
	}
	return b.String()
}

const metricOrigin = "the metrics in internal/record/metric"

func metricTable() string {
	var b strings.Builder
	b.WriteString("| metric | value | |\n|---|---|---|\n")
	ofTrial, ofOperation, ofEvent := metric.Docs()
	for _, d := range slices.Concat(ofTrial, ofOperation, ofEvent) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, valueOf[d.Unit], d.Text)
	}
	return b.String()
}

var valueOf = map[metric.Unit]string{
	metric.Number: "a number: `0`", metric.Rate: "a rate: `5000/s`", metric.Time: "a time: `300ms`, `60s`",
	metric.Share: "a share: `99.9%`", metric.Bytes: "a size: `12MB`, `1GiB`", metric.Cores: "cores: `1.5`",
}

const operatorOrigin = "the operators in internal/record/metric"

func operatorTable() string {
	means := map[string]string{"<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "==": "exactly", "!=": "anything but"}
	var b strings.Builder
	b.WriteString("| operator | the figure is |\n|---|---|\n")
	for _, op := range metric.AssertionOperators() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", op, means[op])
	}
	return b.String()
}

const overlayOrigin = "the registry in internal/lab"

func overlayTable() string {
	var b strings.Builder
	b.WriteString("| `overlay:` | route of packets | detects | installed by |\n|---|---|---|---|\n" +
		"| `direct` (default) | the first link of a pair; nodes do not forward | nothing | |\n")
	for _, a := range lab.Overlays() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `skerry install %s` |\n", a.Name, a.Docs.Takes, a.Docs.Notices, a.Recipe.Name)
	}
	return b.String()
}

func addOverlays(s *jsonschema.Schema, r *jsonschema.Reflector) {
	spec := s.Definitions[reflect.TypeFor[topology.OverlaySpec]().Name()]
	kind, _ := spec.Properties.Get("kind")
	spec.Properties.Delete("Settings") // replaced by the keys of the kinds
	kind.Enum = []any{topology.Direct}
	registry := lab.Overlays()
	uses := make([]string, len(registry))
	for i, a := range registry {
		kind.Enum = append(kind.Enum, a.Name)
		uses[i] = a.Name + " " + a.Docs.For
		addOptions(s, r, spec, a)
	}
	first, _, _ := strings.Cut(kind.Description, ", or ")
	kind.Description = first + ", " + strings.Join(uses[:len(uses)-1], ", ") + ", or " + uses[len(uses)-1] + "."
}

func addOptions(s *jsonschema.Schema, r *jsonschema.Reflector, spec *jsonschema.Schema, a overlay.Definition) {
	t := reflect.TypeOf(a.Options()).Elem()
	of := r.ReflectFromType(t)
	of.Definitions, of.Version = nil, ""
	renameKeys(of, t)
	title := strings.ToUpper(a.Name[:1]) + a.Name[1:]
	of.Description = title + " " + a.Docs.Tunes
	s.Definitions[title+"Spec"] = of
	short, _, _ := strings.Cut(a.Docs.Tunes, ".")
	spec.Properties.Set(a.Name, &jsonschema.Schema{Ref: "#/$defs/" + title + "Spec", Description: a.Name + " " + short + "."})
}
