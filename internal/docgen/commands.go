package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands returns a Markdown page for every command below root that help shows, by file
// name, and README.md that lists them.
func Commands(root *cobra.Command) map[string][]byte {
	pages := map[string][]byte{}
	var index strings.Builder
	index.WriteString("# Commands\n\n<!-- Made by \"make docs\" from the commands themselves. -->\n\n| command | |\n|---|---|\n")
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c != root {
			name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), root.Name()+" "), " ", "-") + ".md"
			fmt.Fprintf(&index, "| [%s](%s) | %s |\n", c.CommandPath(), name, c.Short)
			pages[name] = page(c)
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
				visit(sub)
			}
		}
	}
	visit(root)
	index.WriteString(`
Every command takes ` + "`--help`" + ` and ` + "`--verbose`" + `.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it failed; what was finished is kept |
| 2 | the command line or the experiment is wrong; nothing was started |
| 3 | of run: every trial measured and an assertion did not hold, or with --strict one is suspect |
| 130 | interrupted |
`)
	pages["README.md"] = []byte(index.String())
	return pages
}

func page(c *cobra.Command) []byte {
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
	flags(&b, "## Flags", c.NonInheritedFlags())
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
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

// unindent takes away the indentation that help shows examples with.
func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
