package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"

	"skerry/test/vm/plan"
)

// writeInitrd makes the machine's file system: its init, the kernel modules, the
// programs, and the plan that tells init what to do with them.
func (m Machine) writeInitrd(name string, programs []Program) error {
	modules, err := m.modules()
	if err != nil {
		return err
	}
	var archive cpio
	for _, dir := range []string{"dev", "proc", "sys", "run", "tmp", "modules", "programs"} {
		archive.add(dir, modeDir|0o755, nil)
	}
	if err := archive.addFile("init", m.Init); err != nil {
		return err
	}
	var p plan.Plan
	for _, module := range modules {
		at := "modules/" + path.Base(module)
		p.Modules = append(p.Modules, "/"+at)
		if err := archive.addFile(at, module); err != nil {
			return err
		}
	}
	for _, program := range programs {
		at := "programs/" + program.Name
		if err := archive.addFile(at, program.File); err != nil {
			return err
		}
		p.Programs = append(p.Programs, plan.Program{
			Name: program.Name, Path: "/" + at, Args: program.Args, Env: program.Env, EndMark: endMark,
		})
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	archive.add(strings.TrimPrefix(plan.Path, "/"), modeFile|0o644, text)
	archive.add("TRAILER!!!", 0, nil)
	return os.WriteFile(name, archive.Bytes(), 0o600)
}

// cpio is an archive in the "newc" format, the one the kernel unpacks: for each file
// a header of hexadecimal numbers, the name and the contents, both padded to four
// bytes. See Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
type cpio struct {
	bytes.Buffer
	inode int
}

const (
	modeFile = 0o100000
	modeDir  = 0o040000
)

func (c *cpio) add(name string, mode int, content []byte) {
	c.inode++
	fmt.Fprintf(c, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		c.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
	c.pad()
	c.Write(content)
	c.pad()
}

func (c *cpio) pad() {
	for c.Len()%4 != 0 {
		c.WriteByte(0)
	}
}

// addFile adds a file of this machine as an executable.
func (c *cpio) addFile(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	c.add(name, modeFile|0o755, content)
	return nil
}
