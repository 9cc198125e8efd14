// Command example creates a DeadlineJob, waits for its end, and prints its PoCD on the way.
//
//	go run ./example NAME NAMESPACE IMAGE
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	shed "shed.dev/clients/go"
)

var resource = schema.GroupVersionResource{Group: "shed.dev", Version: "v1alpha1", Resource: "deadlinejobs"}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: example NAME NAMESPACE IMAGE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs := client.Resource(resource).Namespace(args[1])

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job(args[0], args[2]))
	if err != nil {
		return err
	}
	if _, err := jobs.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		return err
	}
	reported := ""
	return wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		object, err := jobs.Get(ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var job shed.DeadlineJob
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
			return false, err
		}
		if status := job.Status; status != nil && status.Pocd != nil && *status.Pocd != reported {
			reported = *status.Pocd
			fmt.Println("PoCD", reported)
		}
		return ended(job.Status)
	})
}

// job is three short tasks that must be complete in two minutes.
func job(name, image string) *shed.DeadlineJob {
	within := "2m"
	return &shed.DeadlineJob{
		ApiVersion: "shed.dev/v1alpha1",
		Kind:       "DeadlineJob",
		Metadata:   metav1.ObjectMeta{Name: name},
		Spec: shed.DeadlineJobSpec{
			Completions: 3,
			Deadline:    &shed.Deadline{Within: &within},
			Idempotency: shed.DeadlineJobSpecIdempotencySafe,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "task", Image: image, Command: []string{"sleep", "3"}}},
			}},
		},
	}
}

func ended(status *shed.DeadlineJobStatus) (bool, error) {
	if status == nil {
		return false, nil
	}
	for _, condition := range status.Conditions {
		switch {
		case condition.Status != "True":
		case condition.Type == "Complete":
			fmt.Println("complete")
			return true, nil
		case condition.Type == "Failed":
			return false, fmt.Errorf("the job failed: %s", condition.Message)
		}
	}
	return false, nil
}
