package machines

import (
	"os"
	"path/filepath"

	"skerry/internal/machine/inventory"
)

// counted connects the room's machines with transports whose bytes are counted: all data is also written to files in
// dir, which is created, and their sizes are the counts.
func (r *room) counted(dir string) (list []inventory.Entry, err error) {
	for _, m := range r.machines.Machines {
		files := filepath.Join(dir, m.Name)
		if err := os.MkdirAll(files, 0o700); err != nil {
			return nil, err
		}
		m.Command = append([]string{"sh", "-c", `tee -a "$0/to" | "$@" | tee -a "$0/from"`, files}, m.Command...)
		list = append(list, m)
	}
	return list, nil
}

// carried returns the number of bytes to and from the agents so far.
func carried(dir string) (to, from int64, err error) {
	for way, sum := range map[string]*int64{"to": &to, "from": &from} {
		files, err := filepath.Glob(filepath.Join(dir, "m*", way))
		if err != nil {
			return 0, 0, err
		}
		for _, f := range files {
			st, err := os.Stat(f)
			if err != nil {
				return 0, 0, err
			}
			*sum += st.Size()
		}
	}
	return to, from, nil
}
