// Controls of a server that was started with `--web-control`; otherwise there are none.

import { byId, make, text } from "./dom.js";
import { parseNumber, words } from "./format.js";

/** The name of a control for people: `freq_hz` is the frequency in Hz. */
const named = (name) => words(name).replace(/^freq\b/, "frequency").replace(/ hz$/, ", Hz").replace(/ db$/, ", dB")
  .replace(/ s$/, ", s");

/** The setting and the channel of a control such as `gain_db1`; null if it is one of no channel. */
const ofChannel = ({ name }) => name.match(/^(.*?(?:_hz|_db))(\d+)$/);

/** Whether a control only says when: it has no value to choose. */
const ACTIONS = new Set(["stop", "start", "clear"]);
const isAction = ({ name, kind }) => kind === "true or false" && ACTIONS.has(name);

export class ControlPanel {
  constructor() {
    this.connection = null;
    this.waiting = new Map();
  }

  /** Shows the controls that `hello` lists. */
  show(hello) {
    const controls = hello.control ? hello.controls ?? [] : [];
    byId("control").hidden = !controls.length;
    const key = JSON.stringify(controls);
    if (key === this.key) return;
    this.key = key;
    const targets = new Map();
    for (const control of controls) {
      if (!targets.has(control.target)) targets.set(control.target, []);
      targets.get(control.target).push(control);
    }
    const groups = [...targets].map(([target, list]) => {
      const rows = this.rows(target, list);
      return make("fieldset", {}, make("legend", {}, target), rows);
    });
    byId("control-body").replaceChildren(...groups);
  }

  /** The rows of a target: where it has several channels, those of the chosen one. */
  rows(target, list) {
    const channels = [...new Set(list.map((control) => ofChannel(control)?.[2]).filter(Boolean))];
    const rows = list.map((control) => this.row(control));
    if (!channels.length) return rows;
    const id = `control-${target}-channel`;
    const select = make("select", { id }, channels.map((channel) => make("option", { value: channel }, channel)));
    const choose = () => list.forEach((control, index) => { rows[index].hidden = (ofChannel(control)?.[2] ?? select.value) !== select.value; });
    select.addEventListener("change", choose);
    choose();
    return [make("div", { class: "set" }, make("label", { for: id }, "channel"), select), ...rows];
  }

  row(control) {
    const id = `control-${control.target}-${control.name}`, label = named(ofChannel(control)?.[1] ?? control.name);
    const button = make("button", { type: "submit" }, isAction(control) ? label : "Set");
    const input = this.input(control, id);
    const help = control.help ?? "";
    const said = input ? make("label", { for: id, title: help }, label) : make("span", {}, help);
    const long = input && help.length > 60 ? make("details", {}, make("summary", {}, "what to write"), help) : null;
    const form = make("form", { class: "set", "data-control": `${control.target}.${control.name}` }, said, input, button, long);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const value = this.value(control, input);
      if (value === undefined) {
        this.answer(false, `${control.name}: “${input.value}” is no number; write for example 98.5M`);
        return;
      }
      this.set(control.target, control.name, value, button);
    });
    return form;
  }

  input(control, id) {
    if (isAction(control)) return null;
    if (control.choices?.length) {
      const option = (choice) => make("option", { value: choice, selected: choice === control.value }, String(choice));
      return make("select", { id }, control.choices.map(option));
    }
    if (control.kind === "true or false") return make("input", { id, type: "checkbox", checked: control.value === true });
    const range = control.min !== undefined && control.max !== undefined ? `${control.min} to ${control.max}` : "";
    return make("input", {
      id, type: "text", value: control.value ?? "", placeholder: range || control.kind, title: control.help ?? "",
      autocomplete: "off", spellcheck: "false",
    });
  }

  /** The value of an input; undefined if it is none of the control's kind. */
  value(control, input) {
    if (!input) return true;
    if (input.type === "checkbox") return input.checked;
    const isNumber = control.kind === "a number" || control.kind === "a whole number";
    return isNumber ? parseNumber(input.value) ?? undefined : input.value;
  }

  set(target, name, value, button = null) {
    const id = this.connection.control(target, name, value);
    if (id === null) { this.answer(false, "not connected: nothing was sent"); return; }
    if (button) button.disabled = true;
    const timer = setTimeout(() => this.reply({ id, ok: false, text: `${target} ${name}: no answer within 5 s` }), 5000);
    this.waiting.set(id, { button, timer });
  }

  /** Waits for no reply any more: the connection that it would come on is lost. */
  forget() {
    for (const { button, timer } of this.waiting.values()) {
      clearTimeout(timer);
      if (button) button.disabled = false;
    }
    this.waiting.clear();
  }

  /** Takes a `reply`. */
  reply({ id, ok, text: said }) {
    const one = this.waiting.get(id);
    if (one) {
      clearTimeout(one.timer);
      this.waiting.delete(id);
      if (one.button) one.button.disabled = false;
    }
    this.answer(ok, said || (ok ? "done" : "refused"));
  }

  answer(ok, said) {
    byId("answer").dataset.good = ok ? "yes" : "no";
    text(byId("answer"), `${ok ? "✓" : "✗"} ${said}`);
  }
}
