package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// text has what could break a split: an empty line, a line longer than the
// buffer, letters of several bytes, an invalid byte, no line end at the end.
func text() string {
	return "PodSpecs watch\n\nÄpfel und Öl\n" + strings.Repeat("long line ", 10000) +
		"\n\xffbroken\n" + strings.Repeat("watches watching watched\n", 50) + "end"
}

func setUp(t *testing.T, tasks int) (options, string) {
	folder := t.TempDir()
	o := options{input: filepath.Join(folder, "in"), state: folder, out: folder}
	if err := os.WriteFile(o.input, []byte(text()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHED_COMPLETIONS", fmt.Sprint(tasks))
	var whole bytes.Buffer
	all := counts{}
	for line := range strings.SplitSeq(text(), "\n") {
		all.add([]byte(line))
	}
	if err := all.write(&whole); err != nil {
		t.Fatal(err)
	}
	return o, whole.String()
}

func merged(t *testing.T, o options, tasks int) string {
	total := counts{}
	for index := range tasks {
		file, err := os.Open(resultPath(o.out, index))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := total.read(file); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := total.write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPartsTileTheText(t *testing.T) {
	for _, tasks := range []int{1, 2, 7, 97, 500} {
		o, want := setUp(t, tasks)
		for index := range tasks {
			t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(index))
			if err := runTask(o); err != nil {
				t.Fatal(err)
			}
		}
		if got := merged(t, o, tasks); got != want {
			t.Errorf("%d tasks: the merged counts differ from those of one process", tasks)
		}
	}
}

func TestACloneGoesOnFromAnyCheckpoint(t *testing.T) {
	const tasks = 3
	o, want := setUp(t, tasks)
	t.Setenv("SHED_PROGRESS_FILE", filepath.Join(o.state, "progress"))
	for stop := 1; stop < 60; stop += 7 { // lines that the original got done
		for index := range tasks {
			t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(index))
			t.Setenv("SHED_RESUME_FILE", "")
			t.Setenv("SHED_ATTEMPT", "0")
			original, err := newTask(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := original.save(); err != nil {
				t.Fatal(err)
			}
			lines := 0
			_, err = eachLine(o.input, original.start, original.end, func(line []byte, next int64) error {
				if lines++; lines > stop {
					return os.ErrDeadlineExceeded
				}
				original.counts.add(line)
				original.offset = next
				return original.save()
			})
			if err != nil && err != os.ErrDeadlineExceeded {
				t.Fatal(err)
			}
			t.Setenv("SHED_RESUME_FILE", os.Getenv("SHED_PROGRESS_FILE"))
			t.Setenv("SHED_ATTEMPT", "1")
			if err := runTask(o); err != nil {
				t.Fatal(err)
			}
		}
		if merged(t, o, tasks) != want {
			t.Fatalf("resumed after %d lines: the counts differ from those of one process", stop)
		}
	}
}

func TestStems(t *testing.T) {
	c := counts{}
	c.add([]byte("PodSpecs watches, watching; watched classes policies status bus"))
	want := counts{"pod": 1, "spec": 1, "watch": 3, "class": 1, "policy": 1, "status": 1, "bus": 1}
	if fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", c, want)
	}
}

func TestACheckpointElsewhereIsRefused(t *testing.T) {
	o, _ := setUp(t, 1)
	t.Setenv("JOB_COMPLETION_INDEX", "0")
	task, err := newTask(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "5", "5:../secret", "5:absent.ckpt"} {
		if err := task.load(bad); err == nil {
			t.Errorf("checkpoint %q was taken", bad)
		}
	}
}
