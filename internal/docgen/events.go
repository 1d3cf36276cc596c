package docgen

import (
	"fmt"
	"regexp"
	"strings"

	"skerry/internal/event"
)

// Events writes the tables of kinds into docs/events.md: below the heading of each section,
// in the place of the table that is there.
func Events(page []byte) ([]byte, error) {
	for _, section := range event.Sections() {
		place := regexp.MustCompile(`(?m)(^## ` + string(section) + `\n\n)(<!-- .* -->\n)?(\|.*\n)+`)
		if !place.Match(page) {
			return nil, fmt.Errorf("docs/events.md has no table below %q", section)
		}
		page = place.ReplaceAllFunc(page, func([]byte) []byte {
			return fmt.Appendf(nil, "## %s\n\n<!-- Made by \"make docs\" from the kinds in internal/event. -->\n%s", section, kindTable(section))
		})
	}
	return page, nil
}

// kindTable is a row for each thing to say of a section's kinds; the name stands at the first
// of each kind.
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
