package docgen

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/custom"
)

// ErrMark says that a page lacks the mark that a table stands below.
var ErrMark = errors.New("the page has no line")

// tabled puts a table into a page, in the place of the one that is there, below the line
//
//	<!-- Made by "make docs" from SOURCE. -->
func tabled(source string, table func() string) func([]byte) ([]byte, error) {
	mark := fmt.Sprintf("<!-- Made by \"make docs\" from %s. -->\n", source)
	place := regexp.MustCompile(regexp.QuoteMeta(mark) + `(\|.*\n)*`)
	return func(page []byte) ([]byte, error) {
		if !place.Match(page) {
			return nil, fmt.Errorf("%w %s", ErrMark, strings.TrimSpace(mark))
		}
		return place.ReplaceAllLiteral(page, []byte(mark+table())), nil
	}
}

// databaseTable is the overview of docs/databases.md.
func databaseTable(all []database.About) string {
	var b strings.Builder
	b.WriteString("| database | installed by | scan | join and leave | replicas | smallest cluster |\n|---|---|---|---|---|---|\n")
	for _, a := range all {
		can, r := a.New().Capabilities(), a.Row
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", a.Name, strings.TrimSpace(installed(a)+" "+r.Note),
			said(r.Scan, can.Scan), said(r.Resize, can.Resize), said(r.Replicas, can.Replication), smallest(r.Smallest, can.MinNodes))
	}
	return b.String()
}

// protocolTable is the table of protocols in docs/own-database.md, by name.
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

// said is what a row says in words, or yes or no.
func said(words string, can bool) string {
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

// installed is how a database gets onto a machine.
func installed(a database.About) string {
	if len(a.Recipes) == 0 {
		return "nothing: it is built and packaged with skerry"
	}
	r, command := a.Recipes[0], "`"+installing(a)+"`"
	switch {
	case !r.Fetched():
		return "your own " + r.Programs[0] + ": " + command
	case r.Build != nil:
		return command + ", which compiles"
	}
	return command
}

// installing is the command that a user types to have a database.
func installing(a database.About) string {
	command := "skerry install " + a.Name
	switch r := a.Recipes[0]; {
	case !r.Fetched():
		return command + " --from PATH"
	case r.Build != nil:
		return command + " --build"
	}
	return command
}
