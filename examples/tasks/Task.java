// Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
// Without shed it does the same work from the start.
import java.nio.file.*;

public class Task {
    static final int UNITS = 40;

    public static void main(String[] args) throws Exception {
        String report = System.getenv("SHED_PROGRESS_FILE");
        Path checkpoint = Path.of(System.getenv().getOrDefault("SHED_RESUME_FILE", "/dev/null") + ".checkpoint");
        double step = Double.parseDouble(System.getenv().getOrDefault("STEP", "1"));
        int unit = Files.exists(checkpoint) ? Integer.parseInt(Files.readString(checkpoint)) : 0;
        System.out.println("begins at unit " + unit);
        while (unit < UNITS) {
            Thread.sleep((long) (1000 * step)); // the work on one unit
            unit++;
            if (report == null) continue;
            Path part = Path.of(report + ".new");
            Files.writeString(part, "{\"progress\":\"%d/%d\",\"checkpoint\":\"%d\"}".formatted(unit, UNITS, unit));
            Files.move(part, Path.of(report), StandardCopyOption.ATOMIC_MOVE);
        }
    }
}
