// Command wordcount counts the words of a large text in many tasks. It is an
// example of a task that shed can clone: it reports progress with checkpoints,
// goes on from another attempt's checkpoint, and publishes in one step.
// It knows shed only by environment variables and files, and runs without
// them, e.g. in an indexed batch/v1 Job, just as well.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const help = `usage:
  wordcount task -input FILE -state FOLDER -out FOLDER
      Counts one part of FILE: the part JOB_COMPLETION_INDEX of SHED_COMPLETIONS
      (or -tasks). Checkpoints go to -state, the result to -out/INDEX.tsv.
  wordcount merge -out FOLDER -tasks N
      Adds the results of N tasks up and prints them.
  wordcount count -input FILE
      Counts the whole FILE in this process and prints the result.
  wordcount copy -input FILE -out FILE
      Copies the text to the volume that the tasks read from.
`

type options struct {
	input, state, out string
	tasks             int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no command\n" + help)
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, help) }
	flags.StringVar(&o.input, "input", "", "the text")
	flags.StringVar(&o.state, "state", "", "folder for checkpoints, shared by all attempts")
	flags.StringVar(&o.out, "out", "", "folder for results, shared by all attempts")
	flags.IntVar(&o.tasks, "tasks", 0, "number of tasks, if SHED_COMPLETIONS doesn't say")
	_ = flags.Parse(args[1:]) // ExitOnError: it doesn't return one

	switch args[0] {
	case "task":
		return runTask(o)
	case "merge":
		return merge(o.out, o.tasks)
	case "count":
		return countAll(o.input)
	case "copy":
		return copyFile(o.input, o.out)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], help)
	}
}

// countAll is the plain program that the tasks' merged result must equal.
func countAll(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	counts := counts{}
	if _, err := eachLine(path, 0, info.Size(), func(line []byte, _ int64) error {
		counts.add(line)
		return nil
	}); err != nil {
		return err
	}
	return counts.write(os.Stdout)
}

// merge adds up what the tasks published.
func merge(folder string, tasks int) error {
	if tasks < 1 {
		return errors.New("merge: -tasks must be the number of tasks")
	}
	total := counts{}
	for task := range tasks {
		file, err := os.Open(resultPath(folder, task))
		if err != nil {
			return err
		}
		err = total.read(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return total.write(os.Stdout)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return replaceFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	})
}
