package docgen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/docgen/manual"
	"skerry/internal/report/results"
)

// smokeDir holds the smoke experiments, relative to the repository's root.
const smokeDir = "experiments/smoke"

// registry is where tables of databases come from.
const registry = "the registry in internal/database/all"

// Write writes everything into dir, as docs/ has it, and the smoke experiments and the front
// end's types below root. Pages of commands that are no more are removed.
func Write(dir, root string, commands *cobra.Command) error {
	files, err := Files(dir, root)
	if err != nil {
		return err
	}
	pages := filepath.Join(dir, "commands")
	if err := os.RemoveAll(pages); err != nil {
		return fmt.Errorf("removing old pages: %w", err)
	}
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return fmt.Errorf("writing the documentation: %w", err)
	}
	commandPages, err := Commands(root, commands)
	if err != nil {
		return err
	}
	for name, page := range commandPages {
		files[filepath.Join(pages, name)] = page
	}
	if err := os.MkdirAll(filepath.Join(root, frontEndDir), 0o755); err != nil {
		return fmt.Errorf("writing the front end's types: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return fmt.Errorf("writing the documentation: %w", err)
		}
	}
	return resultsFolder(dir, root).RemoveUnusedPictures(files)
}

// programs are the further programs of this repository, in the order of the index of commands.
var programs = []string{"hydra", "metad"}

// Commands returns the pages of docs/commands by file name: of the program whose root command is given, and of the
// other programs in the repository at source. Those are run with go run, since this program does not link them.
func Commands(source string, commands *cobra.Command) (map[string][]byte, error) {
	all := []manual.Pages{manual.NewPages(commands)}
	for _, name := range programs {
		cmd := exec.Command("go", "run", "./cmd/"+name, "pages")
		cmd.Dir, cmd.Stderr = source, os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("printing the pages of %s: %w", name, err)
		}
		var p manual.Pages
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("reading the pages of %s: %w", name, err)
		}
		all = append(all, p)
	}
	files := map[string][]byte{"README.md": []byte(manual.Index(all))}
	for _, p := range all {
		for name, text := range p.Pages {
			files[name] = []byte(text)
		}
	}
	return files, nil
}

// resultsFolder are the pages of results.
func resultsFolder(dir, root string) results.Folder {
	return results.Folder{Dir: filepath.Join(dir, "results"), Root: root}
}

// Files are what follows from the code, the commands' pages apart, by path: whole files, and
// pages in dir whose tables do.
func Files(dir, root string) (map[string][]byte, error) {
	schema, err := Schema(root)
	if err != nil {
		return nil, err
	}
	machines, err := MachinesSchema(root)
	if err != nil {
		return nil, err
	}
	needs, err := NeedsSchema(root)
	if err != nil {
		return nil, err
	}
	summary, err := SummarySchema(root)
	if err != nil {
		return nil, err
	}
	reference, err := Reference(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		filepath.Join(dir, "experiment.schema.json"):  schema,
		filepath.Join(dir, "machines.schema.json"):    machines,
		filepath.Join(dir, "needs.schema.json"):       needs,
		filepath.Join(dir, "summary.schema.json"):     summary,
		filepath.Join(dir, "experiment-reference.md"): reference,
	}
	tables, err := renderTables(dir)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, tables)
	found, err := resultsFolder(dir, root).RenderFiles()
	if err != nil {
		return nil, err
	}
	maps.Copy(files, found)
	for _, a := range all.Registry() {
		files[filepath.Join(root, smokeDir, a.Name+".yaml")] = smokeExperiment(a)
	}
	types, err := TypeScript(root)
	if err != nil {
		return nil, err
	}
	for name, data := range types {
		files[filepath.Join(root, frontEndDir, name)] = data
	}
	return files, nil
}

// renderTables are those that are written by hand but for tables.
func renderTables(dir string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for page, put := range map[string]func(page []byte) ([]byte, error){
		"events.md":    ReplaceEventTables,
		"databases.md": replaceTable(registry, func() string { return databaseTable(all.Registry()) }),
		"routing.md":   replaceTable(overlayOrigin, overlayTable),
		"assertions.md": func(page []byte) ([]byte, error) {
			page, err := replaceTable(metricOrigin, metricTable)(page)
			if err != nil {
				return nil, err
			}
			return replaceTable(operatorOrigin, operatorTable)(page)
		},
		"own-database.md": replaceTable(registry, func() string { return protocolTable(all.Registry()) }),
	} {
		path := filepath.Join(dir, page)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a page of the documentation: %w", err)
		}
		if files[path], err = put(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

// smokeWidth is what a line of a smoke experiment's comment may be long, in bytes.
const smokeWidth = 93

// smokeOrigin stands in every file that this package writes there.
const smokeOrigin = "# Written by make docs from what the database says about itself.\n"

// smokeExperiment is the file of a database in experiments/smoke.
func smokeExperiment(a database.About) []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=../../docs/experiment.schema.json\n" + smokeOrigin + "#\n")
	for _, line := range wrapText(a.Smoke.Text, smokeWidth-len("# ")) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	b.WriteString("#\n")
	if len(a.Recipes) > 0 {
		fmt.Fprintf(&b, "#   %s\n", installCommand(a))
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

// wrapText is a text in lines of at most so many bytes.
func wrapText(text string, width int) []string {
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
