package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// checkpointEvery is how much work a clone loses at most. A checkpoint costs
// some milliseconds here; a task whose checkpoints are dear makes fewer.
const checkpointEvery = time.Second

// point is what shed reads in SHED_PROGRESS_FILE and hands over in SHED_RESUME_FILE.
type point struct {
	Progress   float64 `json:"progress"`
	Checkpoint string  `json:"checkpoint,omitempty"`
}

// task is one attempt at one part of the text.
type task struct {
	options
	index      int
	start, end int64  // the part: lines that begin here
	attempt    string // tells this attempt's files from those of its siblings
	offset     int64  // everything before it is counted
	counts     counts
}

func runTask(o options) error {
	t, err := newTask(o)
	if err != nil {
		return err
	}
	began := time.Now()
	resumed, err := t.resume()
	if err != nil {
		return err
	}
	// A first report at once: shed then knows how long starting took, and that
	// what follows is work.
	if err := t.save(); err != nil {
		return err
	}
	from, saved := t.offset, time.Now()
	if _, err := eachLine(t.input, t.offset, t.end, func(line []byte, next int64) error {
		t.counts.add(line)
		t.offset = next
		if time.Since(saved) < checkpointEvery {
			return nil
		}
		defer func() { saved = time.Now() }()
		return t.save()
	}); err != nil {
		return err
	}
	if err := t.publish(); err != nil {
		return err
	}
	return summarise(resumed, t.offset-from, time.Since(began))
}

func newTask(o options) (*task, error) {
	index, err := strconv.Atoi(os.Getenv("JOB_COMPLETION_INDEX"))
	if err != nil {
		return nil, fmt.Errorf("JOB_COMPLETION_INDEX: %w", err)
	}
	if text := os.Getenv("SHED_COMPLETIONS"); text != "" {
		if o.tasks, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("SHED_COMPLETIONS: %w", err)
		}
	}
	if index < 0 || index >= o.tasks {
		return nil, fmt.Errorf("index %d is not in 0..%d", index, o.tasks-1)
	}
	info, err := os.Stat(o.input)
	if err != nil {
		return nil, err
	}
	attempt := os.Getenv("SHED_ATTEMPT")
	if attempt == "" {
		attempt = "0" // not run by shed
	}
	size, tasks := info.Size(), int64(o.tasks)
	t := &task{options: o, index: index, attempt: attempt, counts: counts{}}
	t.start, t.end = size*int64(index)/tasks, size*int64(index+1)/tasks
	t.offset = t.start
	return t, nil
}

// resume goes on where SHED_RESUME_FILE says, if there is one, and tells
// how much of the task was done before this attempt.
func (t *task) resume() (float64, error) {
	path := os.Getenv("SHED_RESUME_FILE")
	if path == "" {
		return 0, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // nothing to resume: from the beginning
	} else if err != nil {
		return 0, err
	}
	var p point
	if err := json.Unmarshal(content, &p); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if p.Checkpoint == "" {
		return 0, nil
	}
	if err := t.load(p.Checkpoint); err != nil {
		return 0, fmt.Errorf("resume at %s: %w", p.Checkpoint, err)
	}
	return t.progress(), nil
}

// load takes over the counts of a checkpoint, which names "offset:file".
func (t *task) load(checkpoint string) error {
	_, name, found := strings.Cut(checkpoint, ":")
	if !found || name != filepath.Base(name) {
		return errors.New("not an offset and the name of a file")
	}
	file, err := os.Open(filepath.Join(t.state, name))
	if err != nil {
		return err
	}
	defer file.Close()
	// The file may be newer than the checkpoint's text, as its attempt goes on:
	// the offset that counts is the one that was written with the counts.
	if _, err := fmt.Fscanf(file, "%d\n", &t.offset); err != nil {
		return err
	}
	if t.offset < t.start {
		return fmt.Errorf("offset %d lies before this part", t.offset)
	}
	return t.counts.read(file)
}

// save makes a checkpoint and reports it: in this order, because shed may
// start a clone from a checkpoint as soon as it has read of it.
func (t *task) save() error {
	name := fmt.Sprintf("%d-%s.ckpt", t.index, t.attempt)
	if err := replaceFile(filepath.Join(t.state, name), func(w io.Writer) error {
		fmt.Fprintf(w, "%d\n", t.offset)
		return t.counts.write(w)
	}); err != nil {
		return err
	}
	path := os.Getenv("SHED_PROGRESS_FILE")
	if path == "" {
		return nil
	}
	report, err := json.Marshal(point{t.progress(), fmt.Sprintf("%d:%s", t.offset, name)})
	if err != nil {
		return err
	}
	return replaceFile(path, func(w io.Writer) error {
		_, err := w.Write(report)
		return err
	})
}

// progress is the done part of the whole task, also after a resume.
func (t *task) progress() float64 {
	if t.end == t.start {
		return 1
	}
	return min(1, float64(t.offset-t.start)/float64(t.end-t.start))
}

func resultPath(folder string, index int) string {
	return filepath.Join(folder, strconv.Itoa(index)+".tsv")
}

// publish puts the result in place. Two attempts may both get here; each
// replaces the file as a whole by the same content, so no harm is done
// (spec.idempotency: Safe).
func (t *task) publish() error {
	return replaceFile(resultPath(t.out, t.index), t.counts.write)
}

// summarise leaves a note that outlives the container, in the pod's status.
func summarise(resumed float64, bytes int64, took time.Duration) error {
	note := fmt.Sprintf(`{"resumedAt":%.4f,"bytes":%d,"seconds":%.2f}`, resumed, bytes, took.Seconds())
	fmt.Println(note)
	err := os.WriteFile("/dev/termination-log", []byte(note), 0o644)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // not in a pod
	}
	return err
}

// replaceFile writes a file so that a reader sees the old one or all of the
// new one, also after a crash.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	defer file.Close()
	// Others read it too: shed's sidecar, a clone under another user.
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := write(file); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
