// Package manual renders the commands of a program as Markdown pages and man pages.
package manual

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Pages is the documentation of one program.
type Pages struct {
	Program string `json:"program"`
	Short   string `json:"short"`
	// Rows is the table body for docs/commands/README.md.
	Rows string `json:"rows"`
	// Pages are Markdown pages by file name.
	Pages map[string]string `json:"pages"`
}

const mainProgram = "skerry"

// NewPages returns the pages of all visible commands below root. Names of pages of other programs
// begin with the program, and their root command has a page.
func NewPages(root *cobra.Command) Pages {
	p := Pages{Program: root.Name(), Short: root.Short, Pages: map[string]string{}}
	var rows strings.Builder
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c != root || root.Name() != mainProgram {
			name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), mainProgram+" "), " ", "-") + ".md"
			fmt.Fprintf(&rows, "| [%s](%s) | %s |\n", c.CommandPath(), name, c.Short)
			p.Pages[name] = commandPage(c)
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
				visit(sub)
			}
		}
	}
	visit(root)
	p.Rows = rows.String()
	return p
}

// Index returns docs/commands/README.md, the commands of all programs.
func Index(programs []Pages) string {
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Made by \"make docs\" from the commands themselves. -->\n")
	for _, p := range programs {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| command | |\n|---|---|\n%s", p.Program, p.Short, p.Rows)
	}
	b.WriteString(`
## Exit codes

Every command accepts ` + "`--help`" + ` and ` + "`--verbose`" + `.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it failed; what was finished is kept |
| 2 | the command line or the experiment is wrong; nothing was started |
| 3 | of run: every trial measured and an assertion did not hold, or with --strict one is suspect |
| 130 | interrupted |
`)
	return b.String()
}

func commandPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Made by \"make docs\" from the command itself. -->\n\n", c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(text))
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "```\n%s\n```\n\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "## Examples\n\n```\n%s\n```\n\n", unindent(c.Example))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("## Commands\n\n| command | |\n|---|---|\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "| %s | %s |\n", sub.CommandPath(), sub.Short)
			}
		}
		b.WriteString("\n")
	}
	c.InitDefaultHelpFlag()
	writeFlags(&b, "## Flags", c.NonInheritedFlags())
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeFlags(b *strings.Builder, title string, set *pflag.FlagSet) {
	rows := 0
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			fmt.Fprintf(b, "%s\n\n| flag | default | |\n|---|---|---|\n", title)
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		fallback := f.DefValue
		if fallback == "false" || fallback == "[]" || fallback == "0" {
			fallback = ""
		}
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, fallback, strings.ReplaceAll(usage, "|", `\|`))
	})
	if rows > 0 {
		b.WriteString("\n")
	}
}

func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

// Write writes a man page of section 1 into dir for every visible command below root.
func Write(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create manual directory: %w", err)
	}
	root.DisableAutoGenTag = true // the tag holds the date, so builds would differ
	header := &doc.GenManHeader{Section: "1", Source: "Skerry", Manual: "Skerry"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	return nil
}
