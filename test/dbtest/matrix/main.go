// Command matrix runs the conformance suites of the installed databases, one after the other, and prints the table
// in docs/databases.md:
//
//	go run ./test/dbtest/matrix                   print it
//	go run ./test/dbtest/matrix --write FILE      merge it into a page
//	go run ./test/dbtest/matrix redis etcd        of these packages
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/test/dbtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var page, from string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "matrix [PACKAGE...]", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, packages []string) error {
			dir, failed := from, error(nil)
			if dir == "" {
				var err error
				if dir, err = os.MkdirTemp("", "matrix-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				failed = runSuites(cmd.Context(), cmd.ErrOrStderr(), dir, timeout, packages)
			}
			rows, err := readRows(dir)
			if err != nil {
				return errors.Join(failed, err)
			}
			text := formatTable(rows)
			if page == "" {
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			} else {
				err = insertTable(page, text)
			}
			return errors.Join(failed, err)
		},
	}
	c.Flags().StringVar(&page, "write", "", "merge the rows into the matrix of `PAGE`")
	c.Flags().StringVar(&from, "from", "", "use the rows collected with SKERRY_MATRIX=`DIR` instead of running suites")
	c.Flags().DurationVar(&timeout, "timeout", time.Hour, "timeout of all suites together")
	return c
}

func runSuites(ctx context.Context, out io.Writer, dir string, timeout time.Duration, packages []string) error {
	args := []string{"test", "-count=1", "-p=1", "-run=^TestConformance", "-timeout=" + timeout.String()}
	if len(packages) == 0 {
		args = append(args, "./internal/database/...")
	}
	for _, p := range packages {
		args = append(args, "./"+filepath.Join("internal/database", p))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "SKERRY_MATRIX="+dir)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running the suites: %w", err)
	}
	return nil
}

var errNoRows = errors.New("no suite ran: is any database installed?")

func readRows(dir string) ([]*dbtest.Row, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errNoRows, err)
	}
	var rows []*dbtest.Row
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		row := &dbtest.Row{}
		if err := json.Unmarshal(text, row); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f, err)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *dbtest.Row) int { return strings.Compare(a.Name(), b.Name()) })
	return rows, nil
}

const (
	notReached  = "not reached"
	versionCell = 2 // index in a row split at its bars
)

var aspects = []struct{ key, title string }{
	{"options", "options"}, {"records", "records"}, {"values", "bytes"}, {"scan", "scan"}, {"load", "load"},
	{"churn", "joins and leaves"}, {"halt", "halt"}, {"kill", "kill -9"}, {"lost_joiner", "joiner killed"},
	{"faults", "failed starts"}, {"disk_full", "disk full"}, {"stop", "stop"},
}

func formatTable(rows []*dbtest.Row) string {
	var b strings.Builder
	head, rule := "| database | version |", "|---|---|"
	for _, a := range aspects {
		head += " " + a.title + " |"
		rule += "---|"
	}
	fmt.Fprintln(&b, head)
	fmt.Fprintln(&b, rule)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |", r.Name(), r.Version)
		for _, a := range aspects {
			fmt.Fprintf(&b, " %s |", formatCell(r, a.key))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func formatCell(r *dbtest.Row, aspect string) string {
	word := map[string]string{"pass": "yes", "fail": "**no**", "no": "-", "skip": "-", "": notReached}[r.Aspects[aspect]]
	if aspect == "churn" && r.Churn != nil {
		return fmt.Sprintf("%s: %d changes, %d rows, %d lost", word, len(r.Churn.Steps), r.Churn.Rows, r.Churn.Lost+r.Churn.Stale)
	}
	if a, ok := r.Accounts[aspect]; ok {
		return fmt.Sprintf("%s: %d rows, %d lost", word, a.Rows, a.Lost+a.Stale)
	}
	return word
}

// Markers around the matrix in a page.
const (
	begin = "<!-- matrix: go run ./test/dbtest/matrix --write docs/databases.md -->\n"
	end   = "<!-- end of the matrix -->\n"
)

var errNoMarks = errors.New("the page has no markers around a matrix")

// insertTable merges the matrix into a page, because each machine has suites that it cannot run.
func insertTable(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: %w: %q and %q", page, errNoMarks, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	old, _, _ := strings.Cut(rest, end)
	return os.WriteFile(page, []byte(before+begin+"\n"+mergeTables(old, table)+"\n"+end+after), 0o644)
}

// mergeTables adds to a table the missing rows of an old one, and missing cells of the same version.
func mergeTables(old, table string) string {
	head, rows := splitTable(table)
	oldHead, oldRows := splitTable(old)
	if head != oldHead {
		return table
	}
	for name, row := range rows {
		oldRows[name] = fillRow(oldRows[name], row)
	}
	var b strings.Builder
	b.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(oldRows)) {
		b.WriteString(oldRows[name])
	}
	return b.String()
}

// fillRow replaces the unreached cells of a row by those of an old row.
func fillRow(old, row string) string {
	was, is := strings.Split(old, "|"), strings.Split(row, "|")
	if len(was) != len(is) || was[versionCell] != is[versionCell] {
		return row
	}
	for i, c := range is {
		if strings.TrimSpace(c) == notReached {
			is[i] = was[i]
		}
	}
	return strings.Join(is, "|")
}

// splitTable splits a table into its first two lines and its rows by their first cell.
func splitTable(table string) (head string, rows map[string]string) {
	rows = make(map[string]string)
	lines := slices.Collect(strings.Lines(strings.TrimLeft(table, "\n")))
	for i, line := range lines {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		switch {
		case i < 2:
			head += line
		case ok:
			rows[name] = line
		}
	}
	return head, rows
}
