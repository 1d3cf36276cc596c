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

const smokeDir = "experiments/smoke"

const registry = "the registry in internal/database/all"

// Write writes all generated files: documentation into dir, smoke experiments and front-end types
// below root. It removes pages of removed commands.
func Write(dir, root string, commands *cobra.Command) error {
	files, err := Files(dir, root)
	if err != nil {
		return err
	}
	pages := filepath.Join(dir, "commands")
	if err := os.RemoveAll(pages); err != nil {
		return fmt.Errorf("remove old pages: %w", err)
	}
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return fmt.Errorf("write documentation: %w", err)
	}
	ofCommands, err := CommandPages(root, commands)
	if err != nil {
		return err
	}
	for name, page := range ofCommands {
		files[filepath.Join(pages, name)] = page
	}
	if err := os.MkdirAll(filepath.Join(root, frontEndDir), 0o755); err != nil {
		return fmt.Errorf("write front-end types: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return fmt.Errorf("write documentation: %w", err)
		}
	}
	return resultsFolder(dir, root).RemoveUnusedPictures(files)
}

var programs = []string{"hydra", "metad"}

// CommandPages returns the pages of docs/commands by file name. commands is the root command of
// this program. The pages of other programs come from go run in the repository source.
func CommandPages(source string, commands *cobra.Command) (map[string][]byte, error) {
	all := []manual.Pages{manual.NewPages(commands)}
	for _, name := range programs {
		cmd := exec.Command("go", "run", "./cmd/"+name, "pages")
		cmd.Dir, cmd.Stderr = source, os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("print pages of %s: %w", name, err)
		}
		var p manual.Pages
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("decode pages of %s: %w", name, err)
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

func resultsFolder(dir, root string) results.Folder {
	return results.Folder{Dir: filepath.Join(dir, "results"), Root: root}
}

// Files returns all generated files except the pages of commands, by path.
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

func renderTables(dir string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for page, put := range map[string]func(page []byte) ([]byte, error){
		"events.md":    replaceEventTables,
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
			return nil, fmt.Errorf("read documentation page: %w", err)
		}
		if files[path], err = put(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

const smokeWidth = 93

const smokeOrigin = "# Written by make docs from what the database says about itself.\n"

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
