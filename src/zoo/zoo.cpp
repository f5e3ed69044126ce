#include "zoo/zoo.h"

#include "base/error.h"
#include "base/text.h"
#include "zoo/settings.h"

namespace tenon::zoo {
namespace {

void append(std::vector<Recipe>& recipes, std::vector<Recipe> more) {
  for (Recipe& recipe : more) recipes.push_back(std::move(recipe));
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = [] {
    std::vector<Recipe> list;
    append(list, resnet_recipes());
    append(list, alexnet_recipes());
    append(list, vgg_recipes());
    append(list, mobilenet_recipes());
    append(list, unet_recipes());
    append(list, squeezenet_recipes());
    append(list, densenet_recipes());
    append(list, transformer_recipes());
    append(list, recurrent_recipes());
    append(list, mlp_recipes());
    return list;
  }();
  return all;
}

const Recipe& find_recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) {
    if (recipe.network.name == name) return recipe;
    names.push_back(recipe.network.name);
  }
  throw Error(concat("zoo has no network '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, names));
}

}  // namespace

const std::vector<Network>& networks() {
  static const std::vector<Network> all = [] {
    std::vector<Network> list;
    for (const Recipe& recipe : recipes()) list.push_back(recipe.network);
    return list;
  }();
  return all;
}

Graph build(std::string_view spec) {
  const std::size_t mark = spec.find('?');
  const Recipe& recipe = find_recipe(trim(spec.substr(0, mark)));
  const std::string_view text = mark == std::string_view::npos ? "" : spec.substr(mark + 1);
  return recipe.make(NetworkSettings(recipe.network, trim(text)));
}

}  // namespace tenon::zoo
