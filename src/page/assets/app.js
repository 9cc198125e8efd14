const form = document.querySelector("form");
const answer = document.querySelector("#answer");
const list = document.querySelector("#jobs");

function show(jobs) {
  list.replaceChildren(...jobs.map((job) => {
    const item = document.createElement("li");
    item.textContent = `${job.namespace}/${job.name}: ${job.phase}, PoCD ${job.pocd ?? "unknown"}`;
    return item;
  }));
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("jobs", (event) => show(JSON.parse(event.data).jobs));
  events.addEventListener("end", (event) => {
    answer.textContent = JSON.parse(event.data).error;
    events.close();
  });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  const response = await fetch("/login", { method: "POST", body });
  answer.textContent = response.ok ? "" : (await response.json()).error;
  form.reset();
  if (response.ok) listen();
});

if ((await fetch("/api/session")).ok) listen();
