// The form for the token.

import { element } from "./dom.js";
import { login } from "./session.js";

const COMMAND = "kubectl create token <service account> --namespace <namespace> --duration 1h";

/** The login. `onLogin` is called after a token was accepted; the form shows its errors too. */
export class LoginView {
  title = "Log in";

  constructor({ reason, onLogin }) {
    this.onLogin = onLogin;
    this.error = element("p", { class: "message error", role: "alert", id: "login-error" });
    this.field = element("input", {
      type: "password", id: "token", name: "token", required: true, autocomplete: "off", spellcheck: "false",
      "aria-describedby": "login-error token-help",
    });
    this.button = element("button", { type: "submit", class: "primary" }, "Log in");
    const form = element("form", { class: "login", submit: (event) => this.submit(event) },
      element("label", { for: "token" }, "Token"), this.field, this.button);
    this.heading = element("h1", { tabindex: "-1" }, "Log in");
    this.node = element("div", { class: "narrow" }, this.heading,
      reason && element("p", { class: "message", id: "login-reason" }, reason),
      this.error, form,
      element("div", { id: "token-help" },
        element("p", {}, "Use a token of a user or a service account of the cluster. This command makes one:"),
        element("pre", { tabindex: "0", "aria-label": "Command that makes a token" }, element("code", {}, COMMAND)),
        element("p", {}, "The page shows the jobs of the namespaces in which that account may read deadlinejobs. ",
          "The browser keeps a cookie for the session, and no token.")));
  }

  focus() {
    this.field.focus();
  }

  async submit(event) {
    event.preventDefault();
    const token = this.field.value.trim();
    this.button.disabled = true;
    this.error.textContent = "";
    try {
      await login(token);
      this.field.value = "";
      await this.onLogin();
    } catch (error) {
      this.error.textContent = error.message;
      this.field.select();
      this.field.focus();
    } finally {
      this.button.disabled = false;
    }
  }

  update() {}
  tick() {}
  leave() {}
}
