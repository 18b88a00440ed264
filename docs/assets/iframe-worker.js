// Browsers start no worker for a page that was opened as a file; the search of the site runs in a hidden frame there.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script>
        postMessage = data => frameElement.dispatchEvent(new MessageEvent("message", { data }));
      <\/script><script src="${url}"><\/script>`;
      this.frame.addEventListener("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data })));
      this.loaded = new Promise(done => this.frame.addEventListener("load", done));
      document.body.append(this.frame);
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
