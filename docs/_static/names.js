// The theme's controls that screen readers cannot name, or name otherwise than they are written.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button-field[aria-label]")) {
    // All of its text, as it is written on a wide screen; a phone hides the text, so the label has to stay.
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  for (const toggle of document.querySelectorAll("li.has-children > details > summary")) {
    const entry = toggle.closest("li").querySelector("a");
    if (entry && !toggle.textContent.trim()) toggle.setAttribute("aria-label", `Pages of ${entry.textContent.trim()}`);
  }
});
