// Controls of a server that was started with `--web-control`; otherwise there are none.

import { byId, make, text } from "./dom.js";
import { hertz, parseNumber, si, words } from "./format.js";

/** The name of a control for people: `freq_hz` is the frequency in Hz. */
const named = (name) => words(name).replace(/^freq\b/, "frequency").replace(/ hz$/, ", Hz").replace(/ db$/, ", dB")
  .replace(/ s$/, ", s");

/** The setting and the channel of a control such as `gain_db1`; null if it is one of no channel. */
const ofChannel = ({ name }) => name.match(/^(.*?(?:_hz|_db))(\d+)$/);

/** Whether a control only says when: it has no value to choose. */
const ACTIONS = new Set(["stop", "start", "clear"]);
const isAction = ({ name, kind }) => kind === "true or false" && ACTIONS.has(name);
/** A setting that is itself a verb: `add` a fault. */
const isVerb = ({ name }) => name === "add" || name === "remove";
const large = (name) => name.charAt(0).toUpperCase() + name.slice(1);

/** What an empty input says: the present value where it is known, or an example. */
function hint({ target, name, kind, min, max }, streams) {
  if (min !== undefined && max !== undefined) return `${min} to ${Number(max.toFixed(3))}`;
  const [, setting, channel] = name.match(/^(.*?)(\d*)$/);
  // A setting of no channel is that of the only output, or of all.
  const outputs = [`${target}.out${channel}`, ...(channel ? [] : [`${target}.out0`])];
  const stream = outputs.map((output) => streams.find((one) => one.name === output)).find(Boolean);
  if (setting === "freq_hz") return stream?.centre_hz ? `now ${hertz(stream.centre_hz, 1e3)}` : "such as 98.5M";
  if (setting === "rate_hz") return stream?.rate_hz ? `now ${si(stream.rate_hz, "S/s", 4)}` : "such as 1M";
  if (setting === "gain_db") return "such as 40";
  return kind;
}

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
    if (key !== this.key) {
      this.key = key;
      this.inputs = [];
      this.build(controls);
    }
    for (const [control, input] of this.inputs) input.placeholder = hint(control, hello.streams ?? []);
  }

  build(controls) {
    const targets = new Map();
    const ends = controls.filter(({ target, name }) => target === "run" && name === "stop");
    byId("control-run").replaceChildren(...ends.map((control) => this.action(control, "End the run")));
    for (const control of controls.filter((one) => !ends.includes(one))) {
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
  rows(target, all) {
    const actions = all.filter(isAction), list = all.filter((control) => !isAction(control));
    const settings = list.length ? make("div", { class: "settings" }, this.settings(target, list)) : null;
    const buttons = actions.map((control) => this.action(control, large(named(control.name)), control.help));
    return [settings, actions.length ? make("div", { class: "actions" }, buttons) : null];
  }

  /** A button that only says when, and what it does. */
  action(control, label, help = "") {
    const button = make("button", { type: "submit", title: control.help ?? "" }, label);
    const form = make("form", { class: "action", "data-control": `${control.target}.${control.name}` }, button, help ? make("small", {}, help) : null);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.set(control.target, control.name, true, button);
    });
    return form;
  }

  settings(target, list) {
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
    const id = `control-${control.target}-${control.name}`, help = control.help ?? "";
    const own = isVerb(control) && help.length <= 60 ? help : named(ofChannel(control)?.[1] ?? control.name);
    const button = make("button", { type: "submit" }, isVerb(control) ? large(control.name) : "Set");
    const input = this.input(control, id);
    const said = make("label", { for: id, title: help }, own);
    const long = help.length > 60 ? make("details", {}, make("summary", {}, "what to write"), help) : null;
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
    if (control.choices?.length) {
      const option = (choice) => make("option", { value: choice, selected: choice === control.value }, String(choice));
      return make("select", { id }, control.choices.map(option));
    }
    if (control.kind === "true or false") return make("input", { id, type: "checkbox", checked: control.value === true });
    const input = make("input", {
      id, type: "text", value: control.value ?? "", title: control.help ?? "", autocomplete: "off", spellcheck: "false",
    });
    this.inputs.push([control, input]);
    return input;
  }

  /** The value of an input; undefined if it is none of the control's kind. */
  value(control, input) {
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
