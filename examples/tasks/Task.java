// Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
import java.nio.file.*;

public class Task {
    static final int UNITS = 40;

    public static void main(String[] args) throws Exception {
        Path report = Path.of(System.getenv("SHED_PROGRESS_FILE"));
        Path part = Path.of(report + ".new");
        Path checkpoint = Path.of(System.getenv("SHED_RESUME_FILE") + ".checkpoint");
        double step = Double.parseDouble(System.getenv().getOrDefault("STEP", "1"));
        int unit = Files.exists(checkpoint) ? Integer.parseInt(Files.readString(checkpoint)) : 0;
        System.out.println("begins at unit " + unit);
        while (unit < UNITS) {
            Thread.sleep((long) (1000 * step)); // the work on one unit
            unit++;
            Files.writeString(part, "{\"progress\":\"%d/%d\",\"checkpoint\":\"%d\"}".formatted(unit, UNITS, unit));
            Files.move(part, report, StandardCopyOption.ATOMIC_MOVE);
        }
    }
}
