package vm

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modules lists the files of m.Modules and of what they depend on, dependencies first.
// A module that is built into the kernel needs no file.
func (m Machine) modules() ([]string, error) {
	root, err := glob(m.Kernel, "lib/modules/*")
	if err != nil {
		return nil, err
	}
	t := tree{files: map[string]string{}, seen: map[string]bool{}}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			t.files[canonical(name)] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing kernel modules: %w", err)
	}
	builtin, err := os.ReadFile(filepath.Join(root, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("listing what is built into the kernel: %w", err)
	}
	for _, path := range strings.Fields(string(builtin)) {
		t.seen[canonical(strings.TrimSuffix(filepath.Base(path), ".ko"))] = true
	}
	for _, name := range m.Modules {
		if err := t.load(canonical(name)); err != nil {
			return nil, err
		}
	}
	return t.order, nil
}

// tree walks the dependencies of kernel modules.
type tree struct {
	files map[string]string // by name
	seen  map[string]bool   // loaded already
	order []string          // files
}

func (t *tree) load(name string) error {
	if t.seen[name] {
		return nil
	}
	t.seen[name] = true
	file, ok := t.files[name]
	if !ok {
		return fmt.Errorf("the kernel has no module %s", name)
	}
	needs, err := dependencies(file)
	if err != nil {
		return err
	}
	for _, need := range needs {
		if err := t.load(canonical(need)); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	t.order = append(t.order, file)
	return nil
}

// dependencies reads "depends" of a module's .modinfo section, a sequence of
// NUL-terminated settings.
func dependencies(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading module %s: %w", file, err)
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("module %s has no .modinfo", file)
	}
	info, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("reading module %s: %w", file, err)
	}
	for setting := range bytes.SplitSeq(info, []byte{0}) {
		if names, ok := strings.CutPrefix(string(setting), "depends="); ok && names != "" {
			return strings.Split(names, ","), nil
		}
	}
	return nil, nil
}

// canonical is a module's name as the kernel has it: files may spell _ as -.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }
