package dev.shed.example;

import dev.shed.v1alpha1.Condition;
import dev.shed.v1alpha1.Deadline;
import dev.shed.v1alpha1.DeadlineJob;
import dev.shed.v1alpha1.DeadlineJobSpec;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.PodTemplateSpec;
import io.fabric8.kubernetes.api.model.PodTemplateSpecBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Creates a DeadlineJob, waits for its end, and prints its PoCD on the way. */
public final class Example {
    private static final Set<String> ENDS = Set.of("Complete", "Failed");

    /** Of the status: the PoCD that was printed last. */
    private String reported;

    public static void main(String[] args) {
        if (args.length != 3) {
            System.err.println("usage: Example NAME NAMESPACE IMAGE");
            System.exit(2);
        }
        try (KubernetesClient client = new KubernetesClientBuilder().build()) {
            Condition end = new Example().run(client, args[0], args[1], args[2]);
            if (!end.getType().equals("Complete")) {
                throw new IllegalStateException("the job failed: " + end.getMessage());
            }
            System.out.println("complete");
        }
    }

    private Condition run(KubernetesClient client, String name, String namespace, String image) {
        var jobs = client.genericKubernetesResources("shed.dev/v1alpha1", "DeadlineJob").inNamespace(namespace);
        jobs.resource(converted(job(name, image), GenericKubernetesResource.class)).create();
        var last = jobs.withName(name).waitUntilCondition(this::hasEnded, 5, TimeUnit.MINUTES);
        return ends(converted(last, DeadlineJob.class)).get(0);
    }

    private static <T> T converted(Object object, Class<T> type) {
        return Serialization.unmarshal(Serialization.asJson(object), type);
    }

    /** Three short tasks that must be complete in two minutes. */
    private static DeadlineJob job(String name, String image) {
        PodTemplateSpec template = new PodTemplateSpecBuilder()
                .withNewSpec()
                .withRestartPolicy("Never")
                .addNewContainer().withName("task").withImage(image).withCommand("sleep", "3").endContainer()
                .endSpec()
                .build();
        return new DeadlineJob()
                .withApiVersion("shed.dev/v1alpha1")
                .withKind("DeadlineJob")
                .withMetadata(new ObjectMetaBuilder().withName(name).build())
                .withSpec(new DeadlineJobSpec()
                        .withCompletions(3)
                        .withDeadline(new Deadline().withWithin("2m"))
                        .withIdempotency(DeadlineJobSpec.Idempotency.SAFE)
                        .withTemplate(template));
    }

    private boolean hasEnded(GenericKubernetesResource resource) {
        if (resource == null) {
            return false;
        }
        DeadlineJob job = converted(resource, DeadlineJob.class);
        String pocd = job.getStatus() == null ? null : job.getStatus().getPocd();
        if (pocd != null && !pocd.equals(reported)) {
            reported = pocd;
            System.out.println("PoCD " + pocd);
        }
        return !ends(job).isEmpty();
    }

    private static List<Condition> ends(DeadlineJob job) {
        if (job.getStatus() == null || job.getStatus().getConditions() == null) {
            return List.of();
        }
        return job.getStatus().getConditions().stream()
                .filter(condition -> condition.getStatus().equals("True") && ENDS.contains(condition.getType()))
                .toList();
    }
}
