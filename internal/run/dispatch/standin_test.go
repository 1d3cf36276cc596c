package dispatch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// A simulated Slurm cluster: the test binary runs under the names of Slurm's clients. Its folder
// contains the jobs and the faults: a file FAULT-TRIAL makes the task of that trial fail in that way once.
const clusterVariable = "SKERRY_TEST_CLUSTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(clusterVariable); dir != "" {
		if act, is := map[string]func(cluster) error{
			"sbatch": cluster.sbatch, "squeue": cluster.squeue, "scancel": cluster.scancel,
			"scontrol": cluster.scontrol,
		}[filepath.Base(os.Args[0])]; is {
			if err := act(cluster{dir}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

type cluster struct{ dir string }

// job is an array of jobs.
type job struct {
	Ref    int
	Name   string
	Run    string   // the run directory
	Lines  []string // trials of each element
	States []string
	Avoid  string // excluded machine
}

// node returns the machine of an element: one of three in turn, except the excluded one.
func (j job) node(i int) string {
	node := fmt.Sprintf("node%d", i%3)
	if node == j.Avoid {
		return fmt.Sprintf("node%d", (i+1)%3)
	}
	return node
}

// newCluster puts the replacement into PATH. With a negative limit, tasks wait forever.
func newCluster(t testing.TB, atOnce int) cluster {
	t.Helper()
	c := cluster{t.TempDir()}
	bin := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		if err := os.Symlink(exe, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv(clusterVariable, c.dir)
	t.Setenv(clusterVariable+"_AT_ONCE", fmt.Sprint(atOnce))
	return c
}

func (c cluster) fault(t *testing.T, state string, trial int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("%s-%d", state, trial)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) jobs() (all []job, err error) {
	names, err := filepath.Glob(filepath.Join(c.dir, "job-*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var j job
		if err := json.Unmarshal(text, &j); err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	return all, err
}

func (c cluster) save(j job) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("job-%06d", j.Ref)), text, 0o600)
}

var (
	taskFile = regexp.MustCompile(`--resume '(.*?)'.* "@"'(.*)'`)
	exclude  = regexp.MustCompile(`(?m)^#SBATCH --exclude=(.*)$`)
	jobName  = regexp.MustCompile(`(?m)^#SBATCH --job-name=(.*)$`)
)

func (c cluster) sbatch() error {
	script, err := os.ReadFile(os.Args[len(os.Args)-1])
	if err != nil {
		return err
	}
	jobs, err := c.jobs()
	if err != nil {
		return err
	}
	m := taskFile.FindSubmatch(script)
	tasks, err := os.ReadFile(string(m[2]))
	if err != nil {
		return err
	}
	j := job{Ref: 100 + len(jobs), Name: string(jobName.FindSubmatch(script)[1]), Run: string(m[1]), Lines: strings.Fields(string(tasks))}
	if avoid := exclude.FindSubmatch(script); avoid != nil {
		j.Avoid = string(avoid[1])
	}
	for range j.Lines {
		j.States = append(j.States, "PENDING")
	}
	fmt.Println(j.Ref)
	return c.save(j)
}

// squeue ends some tasks and lists all, or finds jobs by their name.
func (c cluster) squeue() error {
	jobs, err := c.jobs()
	if err != nil {
		return err
	}
	if name, named := strings.CutPrefix(os.Args[len(os.Args)-1], "--name="); named {
		for _, j := range jobs {
			if j.Name == name {
				fmt.Println(j.Ref)
			}
		}
		return nil
	}
	var atOnce int
	if _, err := fmt.Sscan(os.Getenv(clusterVariable+"_AT_ONCE"), &atOnce); err != nil {
		return err
	}
	for _, j := range jobs {
		waiting := 0
		for i, state := range j.States {
			if state != "PENDING" {
				fmt.Printf("%d|%d|%s|%s|None|%d|(null)\n", j.Ref, i+1, state, j.node(i), j.Ref)
				continue
			}
			if atOnce > 0 {
				atOnce--
				if j.States[i], err = c.work(j.Run, j.node(i), j.Lines[i]); err != nil {
					return err
				}
				fmt.Printf("%d|%d|%s|%s|None|%d|(null)\n", j.Ref, i+1, j.States[i], j.node(i), j.Ref)
				continue
			}
			waiting = i + 1
			break
		}
		if waiting > 0 {
			fmt.Printf("%d|[%d-%d]|PENDING||Resources|%d|(null)\n", j.Ref, waiting, len(j.Lines), j.Ref)
		}
		if err := c.save(j); err != nil {
			return err
		}
	}
	return nil
}

// work measures the trials of a line, or fails. On a machine with a file barren-MACHINE, every task fails.
func (c cluster) work(dir, node, line string) (state string, err error) {
	if _, err := os.Stat(filepath.Join(c.dir, "barren-"+node)); err == nil {
		return "FAILED", nil
	}
	ids, err := runner.ParseTrials(line)
	if err != nil {
		return "", err
	}
	w, err := record.OpenWorker(dir)
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		for _, fault := range []string{"NODE_FAIL", "CANCELLED", "PREEMPTED", "TIMEOUT", "FAILED", "COMPLETED"} {
			if os.Remove(filepath.Join(c.dir, fmt.Sprintf("%s-%d", fault, id))) == nil {
				return fault, nil
			}
		}
		trial := record.Trial{State: record.TrialOK, Goodput: float64(id), Verdict: record.Verdict{State: record.Valid}}
		if os.Remove(filepath.Join(c.dir, fmt.Sprintf("suspect-%d", id))) == nil {
			trial.Verdict = record.Verdict{State: record.Suspect, Kinds: []string{"steal"}, Reasons: []string{"stolen"}}
		}
		if os.Remove(filepath.Join(c.dir, fmt.Sprintf("odd-%d", id))) == nil {
			trial.Started = time.Now().Add(-time.Hour)
			trial.Machine = &record.TrialMachine{Machine: record.Machine{Name: "node1"}, Engine: record.Engine{Name: "netem"}, Program: "another"}
		}
		tw, err := w.OpenTrial(id)
		if err != nil {
			return "", err
		}
		if err := tw.Finish(trial); err != nil {
			return "", err
		}
	}
	return "COMPLETED", nil
}

func (c cluster) scancel() error {
	jobs, err := c.jobs()
	for _, j := range jobs {
		for i, state := range j.States {
			if state == "PENDING" {
				j.States[i] = "CANCELLED"
			}
		}
		if err := c.save(j); err != nil {
			return err
		}
	}
	return err
}

func (c cluster) scontrol() error {
	if os.Args[len(os.Args)-1] == "config" {
		fmt.Println("MaxArraySize            = 1001\nMaxJobCount             = 10000")
		return nil
	}
	code := 1
	if _, err := os.Stat(filepath.Join(c.dir, "unshared")); err == nil {
		code = executor.ExitNotShared
	}
	fmt.Printf("JobId=1 JobState=FAILED ExitCode=%d:0 NodeList=node1\n", code)
	return nil
}
